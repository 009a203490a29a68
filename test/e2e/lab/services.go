package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

const containerdSocket = "/run/containerd/containerd.sock"

// asset returns the path of a file that make node built for the nodes.
func asset(name string) string { return filepath.Join(repository(), "bin", "node", name) }

func (m *machine) containerd() service {
	return service{"containerd", []string{m.binary("containerd"), "--config", m.config("containerd.toml")}}
}

func (m *machine) kubelet() service {
	return service{"kubelet", slices.Concat([]string{
		m.binary("kube/kubelet"),
		"--config", m.config("kubelet.yaml"), "--kubeconfig", m.config("kubelet.kubeconfig"),
		"--hostname-override", m.Name, "--node-ip", m.Address, "--v=2",
	}, m.KubeletArgs)}
}

// kubeProxy must not change the limits of connection tracking, which belong to the whole host.
func (m *machine) kubeProxy() service {
	return service{"kube-proxy", []string{
		m.binary("kube/kube-proxy"),
		"--kubeconfig", m.config("kube-proxy.kubeconfig"), "--hostname-override", m.Name,
		"--proxy-mode", proxyMode(), "--cluster-cidr", pods, "--conntrack-max-per-core=0", "--conntrack-min=0",
	}}
}

// proxyMode is nftables, but iptables where the kernel has no nftables for IPv4.
func proxyMode() string {
	if out, err := exec.Command("nft", "add table ip probe; delete table ip probe").CombinedOutput(); err != nil {
		fmt.Printf("kube-proxy uses iptables: nft: %v: %s", err, out)
		return "iptables"
	}
	return "nftables"
}

func (m *machine) binary(name string) string { return filepath.Join(m.Assets, name) }
func (m *machine) config(name string) string { return filepath.Join(m.Disk, name) }

func (m *machine) writeConfig() error {
	mirror := "/etc/containerd/certs.d/_default"
	if err := os.MkdirAll(mirror, 0o755); err != nil {
		return err
	}
	for path, text := range map[string]string{
		m.config("containerd.toml"):         fmt.Sprintf(containerdConfig, containerdSocket, pauseImage),
		m.config("kubelet.yaml"):            fmt.Sprintf(kubeletConfig, containerdSocket, m.Address, m.CA, m.config("resolv.conf")),
		m.config("resolv.conf"):             "nameserver 127.0.0.1\n",
		filepath.Join(mirror, "hosts.toml"): fmt.Sprintf("[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", "http://"+registryAddress),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// containerdConfig pulls every image from the lab's registry. The rest is for hosts that are containers
// themselves, where lowering the OOM score of a process is not permitted.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
[grpc]
  address = %q
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %q
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "/etc/containerd/certs.d"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      SystemdCgroup = false
`

// kubeletConfig renews leases every 2 s, so that the control plane detects a lost node soon.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
oomScoreAdj: 0
containerRuntimeEndpoint: unix://%s
address: %s
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %s}}
authorization: {mode: Webhook}
clusterDomain: cluster.local
resolvConf: %s
volumePluginDir: /var/lib/kubelet/volume-plugins
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%, nodefs.inodesFree: 1%%}
nodeLeaseDurationSeconds: 8
nodeStatusUpdateFrequency: 2s
registryPullQPS: 0
serializeImagePulls: false
`
