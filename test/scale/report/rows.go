package report

import (
	"maps"
	"slices"
	"strings"
)

// rows are readings as lines of tables.
type rows []reading

// rowsOf are those of a trial: phase after phase, and in each the subjects beside each other.
func (run *Run) rowsOf(t *trial) rows {
	var all rows
	var phases []string
	for _, result := range t.results {
		for _, r := range run.read(result) {
			all = append(all, r)
			phases = append(phases, r.Name)
		}
	}
	phases = unique(phases)
	slices.SortStableFunc(all, func(a, b reading) int {
		return slices.Index(phases, a.Name) - slices.Index(phases, b.Name)
	})
	return all
}

func (rs rows) column(name string, of func(reading) string) column {
	c := column{name: name}
	for _, r := range rs {
		c.cells = append(c.cells, of(r))
	}
	return c
}

// label is a column of words.
func (rs rows) label(name string, of func(reading) string) column {
	c := rs.column(name, of)
	c.text = true
	return c
}

// subjects are the labels inside of one trial.
func (rs rows) subjects() []column {
	subject := rs.label("", func(r reading) string { return r.result.Subject })
	subject.always = true
	return []column{rs.label("", func(r reading) string { return r.Name }), subject}
}

// sizes are the labels that tell trials of one scenario apart.
func (rs rows) sizes() []column {
	nodes := rs.column("nodes", func(r reading) string { return number(r.result.Nodes) })
	rules := rs.column("rules", func(r reading) string { return number(r.result.Rules) })
	nodes.always, rules.always = true, true
	return []column{nodes, rules,
		rs.label("mode", func(r reading) string { return r.result.Mode }),
		rs.column("writers", func(r reading) string { return number(r.result.Writers) }),
	}
}

// pace is how fast, and what it took of the machine.
func (rs rows) pace() []column {
	return []column{
		rs.column("load", func(r reading) string { return span(r.Load) }),
		rs.column("took", func(r reading) string { return span(r.took()) }),
		rs.column("floor", func(r reading) string { return r.timeRatio().String() }),
		rs.column("first", reading.first),
		rs.column("p50", func(r reading) string { return span(r.latency().P50) }),
		rs.column("p90", func(r reading) string { return span(r.latency().P90) }),
		rs.column("p99", func(r reading) string { return span(r.latency().P99) }),
		rs.column("max", func(r reading) string { return span(r.latency().Max) }),
		rs.column("CPU", func(r reading) string { return span(r.CPU) }),
		rs.column("floor", func(r reading) string { return r.cpuRatio().String() }),
		rs.column("peak", reading.peak),
	}
}

// work is what it asked of others.
func (rs rows) work() []column {
	requests := func(of func(tally) int) func(reading) string {
		return func(r reading) string {
			if r.Requests == nil {
				return ""
			}
			return number(of(tallyOf(r.Requests)))
		}
	}
	return []column{
		rs.column("nodes written", requests(func(t tally) int { return t.nodes })),
		rs.column("status", requests(func(t tally) int { return t.status })),
		rs.column("events", requests(func(t tally) int { return t.events })),
		rs.column("others", requests(func(t tally) int { return t.others })),
		rs.column("refused", func(r reading) string { return codes(r.Refused) }),
		rs.column("into etcd", reading.etcd),
		rs.column("floor", func(r reading) string { return r.bytesRatio().String() }),
		rs.column("left", func(r reading) string { return number(sum(r.left())) }),
	}
}

// server is what it cost the API server.
func (rs rows) server() []column {
	return []column{
		rs.column("allocated", reading.allocated),
		rs.column("floor", func(r reading) string { return r.allocatedRatio().String() }),
	}
}

// extra is what only some scenarios count.
func (rs rows) extra() []column {
	var names []string
	for _, r := range rs {
		names = append(names, slices.Collect(maps.Keys(r.Extra))...)
	}
	names = slices.DeleteFunc(unique(names), func(name string) bool { return name == "births" }) // those of events, which the text tells
	slices.Sort(names)
	if !slices.ContainsFunc(rs, reading.tellsChanges) {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "changes" })
	}
	var columns []column
	for _, name := range names {
		columns = append(columns, rs.column(name, func(r reading) string {
			value, ok := r.Extra[name]
			if !ok {
				return ""
			}
			if value >= 1000 {
				return number(int(value))
			}
			return plain(value, 3)
		}))
	}
	return columns
}

// tellsChanges says whether the number of changes is another than that of nodes.
func (r reading) tellsChanges() bool {
	changes, ok := r.Extra["changes"]
	return ok && changes > 0 && int(changes) != r.result.Nodes
}

// first is how long a restarted controller took for its first change.
func (r reading) first() string {
	if r.result.Scenario != Restart {
		return ""
	}
	return span(r.First)
}

// peak is of the whole result, so it stands with the first phase.
func (r reading) peak() string {
	if r.result.Peak == 0 || r.Phase != &r.result.Phases[0] {
		return ""
	}
	return size(r.result.Peak)
}

// speed is how fast the machine was.
func (rs rows) speed() column {
	return rs.column("speed", func(r reading) string {
		if r.speed == 0 {
			return ""
		}
		return plain(float64(r.speed), 2)
	})
}

// runs is how often it was run, where that was more than once.
func (rs rows) runs() column {
	return rs.column("runs", func(r reading) string {
		if r.result.Runs < 2 || r.Phase != &r.result.Phases[0] {
			return ""
		}
		return number(r.result.Runs)
	})
}

// etcd is marked where the bytes of the load are among them.
func (r reading) etcd() string {
	if own, known := r.ownBytes(); known {
		return size(own)
	}
	if r.EtcdBytes == 0 {
		return ""
	}
	return size(r.EtcdBytes) + "*"
}

// allocated is what the API server allocated, for the load too.
func (r reading) allocated() string {
	if r.Allocated == 0 {
		return ""
	}
	return size(r.Allocated)
}

// withLoad says whether a row is so marked.
func (rs rows) withLoad() bool {
	return slices.ContainsFunc(rs, func(r reading) bool { return strings.HasSuffix(r.etcd(), "*") })
}

// codes are counts by code: "12 × 429".
func codes(refused map[string]int) string {
	var all []string
	for _, code := range slices.Sorted(maps.Keys(refused)) {
		all = append(all, number(refused[code])+" × "+code)
	}
	return strings.Join(all, ", ")
}
