package manager

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/program"
)

// Options configure the manager. NewOptions has the defaults; AddFlags lets the command
// line change them.
type Options struct {
	program.Options
	APIQPS        float32
	APIBurst      int
	MetricsAddr   string
	MetricsSecure bool
	MetricsCerts  string
	HealthAddr    string
	PprofAddr     string
	LeaderElect   bool
	LeaseSpace    string
	// Peers are namespaces, in addition to the manager's own, whose live lease keeps it from leading.
	Peers       leadership.PeerNamespaces
	NodeWorkers int
	RuleWorkers int

	// SettleTime is how long a change of a policy may take to reach every API server.
	SettleTime time.Duration

	// RequestTimeout is the longest time that an API server works on one request.
	RequestTimeout time.Duration

	// ListRest is how long an entry stays in the list of rule taints after the last trace of its rule is gone.
	// Zero: as long as a write may still happen. Only tests set it; there is no flag for it.
	ListRest time.Duration

	// ManagePolicies is true if the manager writes the policies readygate-taint-new-nodes and readygate-gate-new-pods.
	// Otherwise an administrator applies them, and the manager reports when they differ from the rules.
	ManagePolicies bool

	// LatchImage is the image of the init container that delays the start of pods of rules with startHold. Empty: their
	// start is not delayed.
	LatchImage string

	// Registerer registers the metrics. The metrics endpoint serves those of the default one.
	Registerer prometheus.Registerer
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		APIQPS:      -1,
		APIBurst:    -1,
		MetricsAddr: "0",
		HealthAddr:  ":8081",
		Peers:       leadership.DefaultPeerNamespaces(),
		NodeWorkers: 16,
		RuleWorkers: 4,
		SettleTime:  5 * time.Second,
		Registerer:  metrics.Registry,

		RequestTimeout: leadership.DefaultRequestTimeout,
		ManagePolicies: true,
	}
}

// AddFlags adds a flag for every option that a user may set.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	flags.Float32Var(&o.APIQPS, "kube-api-qps", o.APIQPS, "Maximum requests per second to the API server. -1: no limit in the manager; API Priority and Fairness of the API server applies.")
	flags.IntVar(&o.APIBurst, "kube-api-burst", o.APIBurst, "Maximum burst of requests above --kube-api-qps. -1: twice --kube-api-qps.")
	flags.StringVar(&o.MetricsAddr, "metrics-bind-address", o.MetricsAddr, "Address of the metrics endpoint, e.g. :8443. 0: off.")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", o.MetricsSecure, "Serve metrics over HTTPS, only to clients that are authorized to GET /metrics.")
	flags.StringVar(&o.MetricsCerts, "metrics-cert-dir", o.MetricsCerts, "Directory with tls.crt and tls.key for --metrics-secure. Empty: a self-signed certificate.")
	flags.StringVar(&o.HealthAddr, "health-probe-bind-address", o.HealthAddr, "Address of /healthz and /readyz, e.g. :8081. 0: off.")
	flags.StringVar(&o.PprofAddr, "pprof-bind-address", o.PprofAddr, "Address of the pprof endpoint, e.g. 127.0.0.1:6060. Empty: off.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Use leader election, so that one of several replicas is active.")
	flags.StringVar(&o.LeaseSpace, "leader-election-namespace", o.LeaseSpace, "Namespace of the lease for --leader-elect, and of the ConfigMap readygate-rule-taints. Empty: the namespace that the manager runs in. Outside of a cluster, the ConfigMap is in readygate-system.")
	o.Peers.AddFlag(flags)
	flags.IntVar(&o.NodeWorkers, "node-concurrent-reconciles", o.NodeWorkers, "Maximum number of concurrent Node reconciles. Each has at most one request in flight.")
	flags.IntVar(&o.RuleWorkers, "rule-concurrent-reconciles", o.RuleWorkers, "Maximum number of concurrent NodeReadinessRule reconciles. Each has at most one request in flight.")
	flags.DurationVar(&o.SettleTime, "policy-settle-time", o.SettleTime, "Maximum time until every API server uses a change of the policies readygate-taint-new-nodes and readygate-gate-new-pods. The manager waits for this time before it reports a new rule as covered or removes the finalizer of a deleted one.")
	flags.DurationVar(&o.RequestTimeout, "api-server-request-timeout", o.RequestTimeout, "The --request-timeout of the API servers; if they differ, the longest. A write without a response counts towards maxUnavailable for this time plus 10s.")
	flags.BoolVar(&o.ManagePolicies, "manage-policies", o.ManagePolicies, "Update the policies readygate-taint-new-nodes and readygate-gate-new-pods when rules change. If false, an administrator applies them (kubectl readiness policy | kubectl apply -f -), the manager needs no permission to update them, and rules report PolicyOutdated while the policies differ from the rules.")
	flags.StringVar(&o.LatchImage, "latch-image", o.LatchImage, "Image of the init container that delays the start of pods for PodReadinessRules with startHold. Empty: the start is not delayed, and such rules report NoLatchImage.")
}

// Validate names the first flag that cannot work, and a value that would.
func (o *Options) Validate() error {
	for name, workers := range map[string]int{"node-concurrent-reconciles": o.NodeWorkers, "rule-concurrent-reconciles": o.RuleWorkers} {
		if workers < 1 {
			return fmt.Errorf("--%s is %d, must be at least 1, e.g. --%s=16", name, workers, name)
		}
	}
	if err := o.Peers.Validate(); err != nil {
		return err
	}
	if o.SettleTime < 0 {
		return fmt.Errorf("--policy-settle-time is %v, must not be negative, e.g. --policy-settle-time=5s", o.SettleTime)
	}
	if o.RequestTimeout < time.Second || o.RequestTimeout > leadership.MaxRequestTimeout {
		return fmt.Errorf("--api-server-request-timeout is %v, must be between 1s and %v: set it to the --request-timeout of the API servers, e.g. --api-server-request-timeout=60s", o.RequestTimeout, leadership.MaxRequestTimeout)
	}
	if o.APIQPS == 0 || o.APIBurst == 0 {
		return fmt.Errorf("--kube-api-qps is %v and --kube-api-burst is %d, must not be 0, e.g. --kube-api-qps=100 --kube-api-burst=200, or -1 for no limit", o.APIQPS, o.APIBurst)
	}
	return o.validateMetrics()
}

func (o *Options) validateMetrics() error {
	if o.MetricsCerts != "" && !o.MetricsSecure {
		return fmt.Errorf("--metrics-cert-dir is %q, but metrics are not served over HTTPS: add --metrics-secure", o.MetricsCerts)
	}
	if o.MetricsSecure && (o.MetricsAddr == "0" || o.MetricsAddr == "") {
		return errors.New("--metrics-secure is set, but metrics are off: add an address, e.g. --metrics-bind-address=:8443")
	}
	if o.MetricsCerts != "" {
		if _, err := os.Stat(filepath.Join(o.MetricsCerts, "tls.crt")); err != nil {
			return fmt.Errorf("--metrics-cert-dir must contain tls.crt and tls.key: %w", err)
		}
	}
	return nil
}

// restConfig is the configuration of the client.
func (o *Options) restConfig() (*rest.Config, error) {
	cfg, err := o.Config("readygate-manager")
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst = o.APIQPS, o.APIBurst
	cfg.DisableCompression = true // compressing a list of all nodes costs the API server more than sending it uncompressed
	if cfg.QPS > 0 && cfg.Burst < 0 {
		cfg.Burst = max(1, int(2*cfg.QPS))
	}
	return cfg, nil
}
