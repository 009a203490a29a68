package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
)

const user = "reporter"

// role is what docs/reporter.md grants the reporter's account.
const role = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reporter}
rules: [{apiGroups: [""], resources: [nodes/status], verbs: [patch, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reporter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reporter}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: reporter}]
`

// seen is a condition of a node with a status.
type seen struct{ node, condition, status string }

// lab has an API server, endpoints of components, and a watch of the conditions.
type lab struct {
	reporter   string // path of the binary
	cluster    *testenv.Cluster
	components *httptest.Server
	ready      sync.Map // paths that return 200
	dir        string   // temporary files
	first      sync.Map // of seen: a channel with the time when the watch received it first
}

func newLab(ctx context.Context, reporter string) (*lab, error) {
	l := &lab{reporter: reporter}
	l.components = httptest.NewServer(http.HandlerFunc(l.serve))
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *lab) open(ctx context.Context) (err error) {
	if l.dir, err = os.MkdirTemp("", "reporterbench-"); err != nil {
		return err
	}
	if l.cluster, err = testenv.NewCluster(ctx); err != nil {
		return err
	}
	if err := l.cluster.Apply(ctx, role); err != nil {
		return err
	}
	config, err := l.cluster.ControlPlane.Config(user)
	if err != nil {
		return err
	}
	if err := controlplane.WriteKubeconfig(filepath.Join(l.dir, "kubeconfig"), config); err != nil {
		return err
	}
	events, err := l.cluster.Client.Watch(ctx, &corev1.NodeList{})
	if err != nil {
		return err
	}
	go func() {
		for event := range events.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok {
				for _, c := range node.Status.Conditions {
					l.received(seen{node.Name, string(c.Type), string(c.Status)}, time.Now())
				}
			}
		}
	}()
	return nil
}

func (l *lab) close() error {
	l.components.Close()
	var err error
	if l.cluster != nil {
		err = l.cluster.Stop()
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}

// received records the first time of a condition.
func (l *lab) received(s seen, at time.Time) {
	select {
	case l.channel(s) <- at:
	default: // not the first time
	}
}

func (l *lab) channel(s seen) chan time.Time {
	c, _ := l.first.LoadOrStore(s, make(chan time.Time, 1))
	return c.(chan time.Time)
}

// await returns when the watch first received a condition. It is called once per condition.
func (l *lab) await(ctx context.Context, p *process, s seen) (time.Time, error) {
	select {
	case at := <-l.channel(s):
		return at, nil
	case <-p.done:
		return time.Time{}, fmt.Errorf("the reporter ended with %v: %s", p.cmd.ProcessState, p.output.String())
	case <-time.After(startTimeout):
		return time.Time{}, fmt.Errorf("%s is not %s after %v", s.condition, s.status, startTimeout)
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// process is a reporter that runs.
type process struct {
	cmd    *exec.Cmd
	output strings.Builder // is read when it has ended
	done   chan struct{}
}

// start creates a node as large as one that has run pods for a while, and starts a reporter on it.
func (l *lab) start(ctx context.Context, node string, env []string, args ...string) (*process, error) {
	object := testenv.Node(node, nil)
	for i := range 50 {
		image := corev1.ContainerImage{SizeBytes: 100 << 20}
		for tag := range 5 {
			image.Names = append(image.Names, fmt.Sprintf("registry.example.com/platform/%s/component-%02d:v1.%d.0-%064x", strings.Repeat("team-", 8), i, tag, i))
		}
		object.Status.Images = append(object.Status.Images, image)
	}
	if err := l.cluster.Client.Create(ctx, object); err != nil {
		return nil, fmt.Errorf("creating a node: %w", err)
	}
	p := &process{done: make(chan struct{})}
	p.cmd = exec.Command(l.reporter, append([]string{"--kubeconfig", filepath.Join(l.dir, "kubeconfig")}, args...)...)
	p.cmd.Env = append(slices.Clone(env), "NODE_NAME="+node, "METRICS_BIND_ADDRESS=127.0.0.1:0")
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := controlplane.StartChild(p.cmd); err != nil {
		return nil, fmt.Errorf("starting the reporter: %w", err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is read from ProcessState
		close(p.done)
	}()
	return p, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Kill() // it may have ended before
	<-p.done
}

// setReady makes the endpoint of a component return 200 instead of 503, and returns since when.
func (l *lab) setReady(component string) time.Time {
	l.ready.Store("/"+component, true)
	return time.Now()
}

func (l *lab) serve(w http.ResponseWriter, r *http.Request) {
	if _, ready := l.ready.Load(r.URL.Path); !ready {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	}
}
