package controlplane

import "net"

// Network is a network that nodes with real kubelets share with the control plane. The API
// server then listens on all its addresses, reaches kubelets, and gives pods their tokens.
type Network struct {
	// Address is that of the control plane in this network, e.g. 10.88.0.1.
	Address string
	// Services is the range of Services, and ServiceAddress its first address, which is that of
	// the API server, e.g. 10.96.0.0/16 and 10.96.0.1.
	Services, ServiceAddress string
	// Pods is the range that every node gets a /24 of, e.g. 10.244.0.0/16.
	Pods string
}

// addresses are those that clients know the API server by, besides loopback.
func (n *Network) addresses() []net.IP {
	if n == nil {
		return nil
	}
	return []net.IP{net.ParseIP(n.Address), net.ParseIP(n.ServiceAddress)}
}

// apiServerArgs say who can reach the API server, and whom it can reach. Without nodes no
// kubelet would mount the token that the admission plugin ServiceAccount asks for.
func (n *Network) apiServerArgs(c *ControlPlane) []string {
	if n == nil {
		return []string{"--bind-address", loopback, "--service-cluster-ip-range", "10.0.0.0/24", "--disable-admission-plugins", "ServiceAccount"}
	}
	return []string{
		"--bind-address", "0.0.0.0", "--advertise-address", n.Address, "--service-cluster-ip-range", n.Services,
		"--kubelet-client-certificate", c.file("kubelet-client.crt"), "--kubelet-client-key", c.file("kubelet-client.key"),
		"--kubelet-preferred-address-types", "InternalIP", "--allow-privileged",
	}
}

// controllerManagerArgs give every node its part of the pods' range.
func (n *Network) controllerManagerArgs() []string {
	if n == nil {
		return nil
	}
	return []string{"--allocate-node-cidrs", "--cluster-cidr", n.Pods}
}

// CA is the path of the certificate authority's certificate, which kubelets trust.
func (c *ControlPlane) CA() string { return c.file("ca.crt") }
