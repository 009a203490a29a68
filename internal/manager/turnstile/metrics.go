package turnstile

import "github.com/prometheus/client_golang/prometheus"

var (
	placesDesc = prometheus.NewDesc("node_readiness_client_places",
		"Requests to the API server that may be under way at one time now. Fewer than usual: the server asked for less.", nil, nil)
	underWayDesc = prometheus.NewDesc("node_readiness_client_requests_under_way",
		"Requests to the API server that are under way, by what they are about (node, other, event). Watches and leases are not counted.", []string{"need"}, nil)
	waitingDesc = prometheus.NewDesc("node_readiness_client_requests_waiting",
		"Requests to the API server that wait for a place, by what they are about (node, other, event).", []string{"need"}, nil)
)

// Describe names the metrics.
func (t *Turnstile) Describe(descs chan<- *prometheus.Desc) {
	descs <- placesDesc
	descs <- underWayDesc
	descs <- waitingDesc
}

// Collect counts at the time of the scrape.
func (t *Turnstile) Collect(metrics chan<- prometheus.Metric) {
	t.mu.Lock()
	all, underWay := t.places.limit[node], t.places.underWay
	var waiting [needs]int
	for n := range needs {
		waiting[n] = t.places.waiting[n].Len()
	}
	t.mu.Unlock()

	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(placesDesc, all)
	for n := range needs {
		gauge(underWayDesc, underWay[n], n.String())
		gauge(waitingDesc, waiting[n], n.String())
	}
}
