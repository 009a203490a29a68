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

// Check checks a component.
type Check interface {
	// Run runs the check once. It returns at the latest when the context ends.
	Run(ctx context.Context) Observation
}

// Spec configures a check: exactly one of its fields is set.
type Spec struct {
	// http sends a request to an HTTP or HTTPS endpoint.
	HTTP *HTTP `json:"http,omitempty"`
	// tcp opens a connection.
	TCP *TCP `json:"tcp,omitempty"`
	// grpc calls the gRPC health protocol.
	GRPC *GRPC `json:"grpc,omitempty"`
	// file checks a file.
	File *File `json:"file,omitempty"`
	// exec runs a command.
	Exec *Exec `json:"exec,omitempty"`
	// cni calls the CNI plugins of this node: STATUS, or ADD and DEL for a canary.
	CNI *CNI `json:"cni,omitempty"`
	// peers connects to the reporters of other nodes over the pod network.
	Peers *Peers `json:"peers,omitempty"`
}

// Env is the environment of a check.
type Env struct {
	// Node is the name of the node that the check runs on.
	Node string
	// Timeout is the maximum duration of a run, for messages. The context enforces it.
	Timeout time.Duration
	// HoldDown is how long the check must fail before a True condition becomes False.
	HoldDown time.Duration
	// Variable returns an environment variable: os.Getenv, except in tests.
	Variable func(string) string
}

// kind is implemented by every kind of check.
type kind interface {
	// check returns the check, or an error that begins with the name of the invalid field.
	check(env Env) (Check, error)
}

// kinds returns the fields that are set, by name.
func (s Spec) kinds() map[string]kind {
	set := map[string]kind{"http": s.HTTP, "tcp": s.TCP, "grpc": s.GRPC, "file": s.File, "exec": s.Exec, "cni": s.CNI, "peers": s.Peers}
	maps.DeleteFunc(set, func(_ string, k kind) bool { return reflect.ValueOf(k).IsNil() })
	return set
}

// New compiles a check. An error begins with the invalid field, e.g. http.url, and has a valid value as an example.
func New(spec Spec, env Env) (Check, error) {
	set := spec.kinds()
	names := slices.Sorted(maps.Keys(set))
	switch len(names) {
	case 0:
		return nil, wrong("http", `is not set, nor is tcp, grpc, file, exec, cni or peers: set one of them, e.g. http: {url: "http://localhost:9099/readiness"}, or cni: {} for the default CNI directories`)
	case 1:
		made, err := set[names[0]].check(env)
		if err != nil {
			return nil, fmt.Errorf("%s.%w", names[0], err)
		}
		return made, nil
	default:
		return nil, wrong(names[0], "is set together with %s: set one of them, and add another entry to checks for each of the others", strings.Join(names[1:], " and "))
	}
}

// Kind returns the name of the kind, e.g. http.
func (s Spec) Kind() string { return strings.Join(slices.Sorted(maps.Keys(s.kinds())), " and ") }

// Costly reports whether a run uses so much of the node's resources that the next one must be delayed.
func (s Spec) Costly() bool { return s.Exec != nil || s.CNI != nil }

// wrong returns an error about a field, which may be nested.
func wrong(field, format string, args ...any) error {
	return fmt.Errorf("%s %s", field, fmt.Sprintf(format, args...))
}

// Parse returns the spec for an endpoint, e.g. http://localhost:9099/readiness.
func Parse(endpoint string) (Spec, error) {
	scheme, rest, found := strings.Cut(endpoint, "://")
	if !found {
		return Spec{}, fmt.Errorf("%q has no scheme, must have one, e.g. http://localhost:9099/readiness", endpoint)
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
		return Spec{}, fmt.Errorf("%q begins with %s://, must begin with http://, https://, tcp://, grpc:// or file://, e.g. http://localhost:9099/readiness; other kinds of checks need a configuration file (--config)", endpoint, scheme)
	}
}
