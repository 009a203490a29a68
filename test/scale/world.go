package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/scale/report"
)

// size is how large a world is.
type size struct {
	Nodes, Rules, Writers int
	Mode                  string
	// Proxied says that the subject speaks to the API server through a proxy.
	Proxied bool
}

// world is a control plane of its own for one subject, with clients for the load.
type world struct {
	size       size
	cluster    *testenv.Cluster
	api        kubernetes.Interface
	metadata   metadata.Interface
	witness    *witness
	metronome  *testenv.Metronome
	stopClock  context.CancelFunc // ends the metronome
	ledger     *ledger
	proxy      *testenv.Proxy // between the subject and the API server; it can be slow or refuse
	dir        string         // of files that are gone in the end
	kubeconfig string         // of the subject
}

// newWorld starts a world for a subject, with nothing in it; close ends it.
func newWorld(ctx context.Context, s subject, size size, taints []string) (*world, error) {
	w := &world{size: size}
	ticking, stop := context.WithCancel(ctx)
	w.metronome, w.stopClock = testenv.StartMetronome(ticking), stop
	if err := w.start(ctx, s, taints); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) start(ctx context.Context, s subject, taints []string) (err error) {
	if w.dir, err = os.MkdirTemp("", "scale-"); err != nil {
		return err
	}
	if w.cluster, err = testenv.NewCluster(ctx); err != nil {
		return err
	}
	if w.metadata, err = metadata.NewForConfig(w.cluster.Config); err != nil {
		return err
	}
	protobuf := rest.CopyConfig(w.cluster.Config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	if w.api, err = kubernetes.NewForConfig(protobuf); err != nil {
		return err
	}
	if err := w.admit(ctx, s); err != nil {
		return err
	}
	w.ledger = newLedger(w.cluster.AuditLog(), s.user())
	own, err := kubernetes.NewForConfig(apart(protobuf))
	if err != nil {
		return err
	}
	w.witness, err = startWitness(ctx, own, taints)
	return err
}

// apart is a configuration whose clients do not share connections with others: client-go shares
// them among equal configurations, and one with a dialer equals no other.
func apart(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return own
}

// admit gives the subject what it may do, and a kubeconfig. All subjects are service accounts,
// so that the API server treats their requests alike.
func (w *world) admit(ctx context.Context, s subject) error {
	config, err := w.cluster.ControlPlane.Config(s.user(), "system:serviceaccounts", "system:serviceaccounts:"+testenv.ManagerNamespace)
	if err != nil {
		return err
	}
	if w.size.Proxied {
		if w.proxy, err = testenv.StartProxy(config); err != nil {
			return err
		}
		config = w.proxy.Config()
	}
	// For whoever wants to look at the world while it is measured.
	if err := controlplane.WriteKubeconfig(filepath.Join(w.dir, "admin.kubeconfig"), w.cluster.Config); err != nil {
		return err
	}
	w.kubeconfig = filepath.Join(w.dir, "kubeconfig")
	if err := controlplane.WriteKubeconfig(w.kubeconfig, config); err != nil {
		return err
	}
	if s.name == report.Ours { // its role is there
		return w.cluster.InstallPolicies(ctx)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scale-subject"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: s.user()}},
	}
	_, err = w.api.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	return err
}

func (w *world) close() error {
	w.stopClock()
	if w.witness != nil {
		w.witness.stop()
	}
	if w.proxy != nil {
		w.proxy.Close()
	}
	var err error
	if w.cluster != nil {
		err = w.cluster.Stop()
	}
	return errors.Join(err, os.RemoveAll(w.dir))
}

// servers is what etcd and the API server say of themselves.
type servers struct {
	bytes, puts int64         // written into etcd so far
	cpu         time.Duration // of the API server
	allocated   int64         // bytes, by the API server so far
}

// servers asks them.
func (w *world) servers(ctx context.Context) (s servers, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.cluster.EtcdMetrics(), nil)
	if err != nil {
		return s, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return s, fmt.Errorf("asking etcd for its metrics: %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	store, err := counters(answer.Body, "etcd_network_client_grpc_received_bytes_total", "etcd_mvcc_put_total")
	if err != nil {
		return s, fmt.Errorf("reading etcd's metrics: %w", err)
	}
	body, err := w.api.CoreV1().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").DoRaw(ctx)
	if err != nil {
		return s, fmt.Errorf("asking the API server for its metrics: %w", err)
	}
	server, err := counters(bytes.NewReader(body), "process_cpu_seconds_total", "go_memstats_alloc_bytes_total")
	if err != nil {
		return s, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return servers{bytes: int64(store[0]), puts: int64(store[1]), cpu: time.Duration(server[0] * float64(time.Second)), allocated: int64(server[1])}, nil
}

// counters sums up the counters of these names, each over all its labels.
func counters(text io.Reader, names ...string) ([]float64, error) {
	sums := make([]float64, len(names))
	found := make([]bool, len(names))
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		i := slices.Index(names, name)
		if i < 0 {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sums[i] += value
		found[i] = true
	}
	if i := slices.Index(found, false); i >= 0 {
		return nil, fmt.Errorf("there is no %s", names[i])
	}
	return sums, lines.Err()
}
