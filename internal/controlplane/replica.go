package controlplane

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
)

// Replica is one more API server on the same etcd, as clusters with several control plane
// nodes have them. What is written through one is seen by the others a moment later.
// KillAPIServer leaves it alone; Stop ends it.
type Replica struct {
	// APIServer is its address, e.g. 127.0.0.1:34568.
	APIServer string

	plane *ControlPlane
}

// StartReplica starts one more API server, with these arguments besides those of the first, and
// returns when it is ready.
func (c *ControlPlane) StartReplica(ctx context.Context, args ...string) (*Replica, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return nil, err
	}
	r := &Replica{APIServer: loopbackAddress(ports[0]), plane: c}
	admin, err := r.Admin()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("apiserver-%d", ports[0])
	p := c.newAPIServer(ports[0], name+".log", c.file(name+"-audit.log"), args...)
	c.others = append(c.others, p)
	if err := p.start(); err != nil {
		return nil, err
	}
	return r, waitReady(ctx, p, admin)
}

// Config is ControlPlane.Config for this API server.
func (r *Replica) Config(user string, groups ...string) (*rest.Config, error) {
	return r.plane.configAt(r.APIServer, user, groups)
}

// Admin is the configuration of a user that may do everything, at this API server.
func (r *Replica) Admin() (*rest.Config, error) {
	return r.Config(adminUser, adminGroup)
}
