package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/scale/report"
)

const (
	// changeTimeout limits the wait for taints to change and for the subject to stop writing.
	changeTimeout = 10 * time.Minute
	// A subject is quiet if the audit log shows no new write of it for quietPolls polls. Polls are counted, not seconds,
	// because nothing is written while the host pauses the machine.
	quietPolls = 10
	quietPoll  = time.Second / 2
	// leftWindow is the time for which requests of a quiet subject are counted.
	leftWindow = 5 * time.Second
)

// change is what a phase writes to the cluster, and the taints that the subject must change.
type change struct {
	phase string
	load  func(ctx context.Context) error
	nodes []string
	held  bool // the nodes must have the taints afterwards
}

// measure applies a change, measures how the subject reacts, and passes the result to keep.
func (w *world) measure(ctx context.Context, pair int, c change, keep func(report.Result)) error {
	logf("%s, %d nodes, %d rules: %s", w.subject, w.Nodes, w.Rules, c.phase)
	r := report.Result{Phase: c.phase, Subject: w.subject, Nodes: w.Nodes, Rules: w.Rules, Pair: pair, Changes: len(c.nodes)}
	err := w.measureInto(ctx, c, &r)
	if err != nil {
		err = fmt.Errorf("%s, %d nodes, %d rules, %s: %w", w.subject, w.Nodes, w.Rules, c.phase, err)
		r.Problem = err.Error()
	}
	switch c.phase {
	case report.Restart:
		r.P99 = 0 // includes the start of the controller
	case report.Join:
		r.Created, r.Untainted = len(c.nodes), w.recorder.untainted()
	}
	keep(r)
	return err
}

func (w *world) measureInto(ctx context.Context, c change, r *report.Result) error {
	before, err := w.gauge(ctx)
	if err != nil {
		return err
	}
	if err := w.log.reset(); err != nil {
		return err
	}
	began := time.Now()
	if err := c.load(ctx); err != nil {
		return fmt.Errorf("writing the load: %w", err)
	}
	ended := time.Now()
	if w.process != nil {
		last, err := w.recorder.await(ctx, c.nodes, c.held)
		if err != nil {
			return errors.Join(err, w.process.Alive())
		}
		if !last.IsZero() {
			ended = last
		}
		settled, err := w.gauge(ctx)
		if err != nil {
			return err
		}
		r.Allocated = settled.allocated - before.allocated
		if err := w.quiet(ctx); err != nil {
			return err
		}
	}
	r.Took, r.Quiet = ended.Sub(began), max(0, w.log.written.Sub(ended))
	latencies := w.recorder.latencies(c.nodes)
	r.P99 = latencies.Quantile(99)
	return w.finish(ctx, before, r)
}

// finish computes the usage since before, and counts the requests that are left.
func (w *world) finish(ctx context.Context, before gauges, r *report.Result) error {
	after, err := w.gauge(ctx)
	if err != nil {
		return err
	}
	r.CPU, r.Peak, r.EtcdBytes = after.usage.CPU-before.usage.CPU, after.usage.Peak, after.etcdBytes-before.etcdBytes
	r.Requests = maps.Clone(w.log.requests)
	if w.process == nil {
		return nil
	}
	if err := errors.Join(w.log.reset(), sleep(ctx, leftWindow), w.log.read()); err != nil {
		return err
	}
	r.Left = maps.Clone(w.log.requests)
	return nil
}

// quiet waits until the subject no longer writes.
func (w *world) quiet(ctx context.Context) error {
	last, polls := w.log.written, 0
	for began := time.Now(); time.Since(began) < changeTimeout; {
		if err := errors.Join(sleep(ctx, quietPoll), w.log.read(), w.process.Alive()); err != nil {
			return err
		}
		if polls++; w.log.written.After(last) {
			last, polls = w.log.written, 0
		}
		if polls >= quietPolls {
			return nil
		}
	}
	return fmt.Errorf("the controller still writes after %v, see its log for repeated changes", changeTimeout)
}

// gauges are read before and after a phase.
type gauges struct {
	usage                testenv.Usage // of the subject
	etcdBytes, allocated int64         // of etcd and of the API server
}

func (w *world) gauge(ctx context.Context) (g gauges, err error) {
	if w.process != nil {
		if g.usage, err = testenv.UsageOf(w.process.Pid()); err != nil {
			return g, errors.Join(err, w.process.Alive())
		}
	}
	_, text, err := testenv.Get(ctx, w.cluster.EtcdURL()+"/metrics")
	if err != nil {
		return g, fmt.Errorf("reading etcd's metrics: %w", err)
	}
	if g.etcdBytes, err = sum(text, "etcd_network_client_grpc_received_bytes_total"); err != nil {
		return g, err
	}
	body, err := w.api.CoreV1().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").DoRaw(ctx)
	if err != nil {
		return g, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	g.allocated, err = sum(string(body), "go_memstats_alloc_bytes_total")
	return g, err
}

// sum adds up a counter over its labels.
func sum(text, name string) (int64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return 0, err
	}
	if families[name] == nil {
		return 0, fmt.Errorf("the metrics have no %s", name)
	}
	total := 0.0
	for _, metric := range families[name].GetMetric() {
		total += metric.GetCounter().GetValue() + metric.GetUntyped().GetValue()
	}
	return int64(total), nil
}
