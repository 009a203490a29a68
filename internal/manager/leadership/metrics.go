package leadership

import "github.com/prometheus/client_golang/prometheus"

// RegisterMetrics registers the metrics: how many other leases are live, and whether the manager waits for
// one. They have no labels, because tenants choose the namespaces.
func RegisterMetrics(registerer prometheus.Registerer, others *Others, waits func() bool) {
	registerer.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "node_readiness_other_leases",
			Help: "Namespaces, other than the manager's own, in which a lease of this API was renewed in the last two minutes. At most 100; only the leader counts.",
		}, func() float64 { return float64(others.Live()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "node_readiness_waiting_for_lease",
			Help: "1 while the manager does not lead because a lease of this API is renewed in a peer namespace, else 0.",
		}, func() float64 {
			if waits() {
				return 1
			}
			return 0
		}))
}
