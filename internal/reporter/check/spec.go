package check

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Check looks at a component once.
type Check interface {
	// Run returns by the end of the context, with what it found until then.
	Run(ctx context.Context) Observation
}

// Spec is what to check: exactly one of its fields is set.
type Spec struct {
	// http asks an HTTP or HTTPS endpoint.
	HTTP *HTTP `json:"http,omitempty"`
	// tcp opens a connection.
	TCP *TCP `json:"tcp,omitempty"`
	// grpc asks with the gRPC health protocol.
	GRPC *GRPC `json:"grpc,omitempty"`
	// file looks at a file.
	File *File `json:"file,omitempty"`
	// exec runs a command.
	Exec *Exec `json:"exec,omitempty"`
	// cni asks the CNI plugins of this node, or has them connect a canary.
	CNI *CNI `json:"cni,omitempty"`
	// peers connects to the reporters of other nodes, over the network of pods.
	Peers *Peers `json:"peers,omitempty"`
}

// Env is what a check knows of its surroundings.
type Env struct {
	// Node is the name of the node that the check runs on.
	Node string
	// Timeout is how long a run may take; it is only said here, and enforced by the context.
	Timeout time.Duration
	// HoldDown is how long the check must fail to make a condition that is True False.
	HoldDown time.Duration
	// Variable gives environment variables; os.Getenv but in tests.
	Variable func(string) string
}

// kind is what the kinds of checks have in common.
type kind interface {
	// check is the check, or an error that begins with the name of the field that is wrong.
	check(env Env) (Check, error)
}

// kinds are the kinds that are set, by the name of the field.
func (s Spec) kinds() map[string]kind {
	set := map[string]kind{"http": s.HTTP, "tcp": s.TCP, "grpc": s.GRPC, "file": s.File, "exec": s.Exec, "cni": s.CNI, "peers": s.Peers}
	maps.DeleteFunc(set, func(_ string, k kind) bool { return reflect.ValueOf(k).IsNil() })
	return set
}

// New is the check that the spec asks for. An error begins with the field that is wrong, as
// http.url, and has a valid value as an example.
func New(spec Spec, env Env) (Check, error) {
	set := spec.kinds()
	names := slices.Sorted(maps.Keys(set))
	switch len(names) {
	case 0:
		return nil, wrong("http", `is not set, nor is tcp, grpc, file, exec, cni or peers: set one of them, e.g. http: {url: "http://localhost:9099/readiness"}, or cni: {} where all is as usual`)
	case 1:
		made, err := set[names[0]].check(env)
		if err != nil {
			return nil, fmt.Errorf("%s.%w", names[0], err)
		}
		return made, nil
	default:
		return nil, wrong(names[0], "is set, and %s as well: a check looks at one thing; make another check of the other", strings.Join(names[1:], " and "))
	}
}

// Kind is the name of the kind, as http.
func (s Spec) Kind() string { return strings.Join(slices.Sorted(maps.Keys(s.kinds())), " and ") }

// Costly reports whether a run takes enough of the machine that it should not follow another at once.
func (s Spec) Costly() bool { return s.Exec != nil || s.CNI != nil }

// wrong is an error about a field. The name may be that of a field in the field.
func wrong(field, format string, args ...any) error {
	return fmt.Errorf("%s %s", field, fmt.Sprintf(format, args...))
}

// Parse is the spec that an endpoint stands for, as http://localhost:9099/readiness.
func Parse(endpoint string) (Spec, error) {
	scheme, rest, found := strings.Cut(endpoint, "://")
	if !found {
		return Spec{}, fmt.Errorf("%q has no scheme, must be as in http://localhost:9099/readiness", endpoint)
	}
	switch scheme {
	case "http", "https":
		return Spec{HTTP: &HTTP{URL: endpoint}}, nil
	case "tcp":
		return Spec{TCP: &TCP{Address: rest}}, nil
	case "grpc":
		address, service, _ := strings.Cut(rest, "/")
		return Spec{GRPC: &GRPC{Address: address, Service: service}}, nil
	case "file":
		return Spec{File: &File{Path: rest}}, nil
	default:
		return Spec{}, fmt.Errorf("%q begins with %s://, must begin with http://, https://, tcp://, grpc:// or file://, e.g. http://localhost:9099/readiness; other checks need a file, see --config", endpoint, scheme)
	}
}
