// Package report turns what the scale benchmark measured into tables, pictures and the page
// docs/performance.md. It only computes: a run is read from a file, and the same run makes the
// same page.
package report

import "time"

// Run is all that one call of the benchmark measured.
type Run struct {
	// Machine and Command say where and how it ran; Version is the build that was measured.
	Machine Machine   `json:"machine"`
	Command string    `json:"command"`
	Version string    `json:"version"`
	Date    time.Time `json:"date"`
	Results []Result  `json:"results"`
}

// Machine is what the numbers depend on.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int64  `json:"memory"` // bytes
	System string `json:"system"`
	Go     string `json:"go"`
}

// Names of subjects that every run has.
const (
	// Ours is Readygate's manager.
	Ours = "readygate"
	// Floor is the least possible controller: one watch, one PATCH a node, no status, no events.
	Floor = "floor"
	// Nobody is no controller at all: what the load alone costs.
	Nobody = "nobody"
)

// Names of scenarios.
const (
	Flip    = "flip"    // the condition of every node changes, as fast as the API server takes it
	Join    = "join"    // nodes join at a rate, born held, and are released later
	Create  = "create"  // a rule is created over nodes that are not ready
	Delete  = "delete"  // that rule is deleted
	Many    = "many"    // as flip, with 100 rules of which 99 select no node
	Steady  = "steady"  // only heartbeats
	Restart = "restart" // the controller is stopped as by a rollout, nodes change, it starts again
	Flap    = "flap"    // as flip, while one node changes 10 times a second
	Busy    = "busy"    // as flip, through an API server that answers 429
	Slow    = "slow"    // as flip, through an API server that takes 500 ms
)

// Result is what one subject did in one scenario, at one size, on a control plane of its own.
type Result struct {
	Scenario string `json:"scenario"`
	Subject  string `json:"subject"`
	Nodes    int    `json:"nodes"`
	Rules    int    `json:"rules"`
	Mode     string `json:"mode"`    // of the rules: continuous or bootstrap-only
	Writers  int    `json:"writers"` // of the load, at the same time

	// Runs is how many finished runs this is the best of, phase by phase; 0: one.
	Runs int `json:"runs,omitempty"`

	Phases []Phase `json:"phases"`

	// Peak is the most memory that the process ever had, and Settled what it had when it was
	// idle with all nodes known: resident, in bytes.
	Peak    int64 `json:"peak"`
	Settled int64 `json:"settled"`
	// Heap is the live heap when idle, where the subject tells (pprof), and HeapEmpty the same
	// before there was a node; 0: unknown.
	Heap      int64 `json:"heap,omitempty"`
	HeapEmpty int64 `json:"heapEmpty,omitempty"`
	// StatusBytes is the size of the largest rule object, as JSON; 0: not looked at.
	StatusBytes int64 `json:"statusBytes,omitempty"`
	// Problem is why the run could not be finished; what was measured until then is kept.
	Problem string `json:"problem,omitempty"`
}

// Phase is one change of the world and what followed from it.
type Phase struct {
	// Name is one word: release, hold, join, create, delete, restart, steady.
	Name string `json:"name"`
	// Load is how long the load itself took: until its last write was answered.
	Load time.Duration `json:"load"`
	// Took is the time from the first write of the load until the last taint had changed.
	Took time.Duration `json:"took"`
	// Quiet is the time from then until the subject's last write.
	Quiet time.Duration `json:"quiet"`
	// First is, for restart, the time from the start of the process until the first taint
	// changed.
	First time.Duration `json:"first,omitempty"`

	// Latency is the time from the write of a condition until its node's taint had changed, as
	// an independent watch saw both.
	Latency Quantiles `json:"latency"`

	// Work is the CPU time of a piece of work that is always the same, on average until then: the
	// more, the slower the machine was; 0: not measured.
	Work time.Duration `json:"work,omitempty"`
	// Stolen is the share of the machine's CPU time that other guests of its host had, from 0 to 1,
	// until then; nil: not known.
	Stolen *float64 `json:"stolen,omitempty"`

	// CPU is what the subject used from the first write until it was quiet.
	CPU time.Duration `json:"cpu"`
	// ServerCPU is what the API server used meanwhile, for whomever.
	ServerCPU time.Duration `json:"serverCPU"`

	// Allocated is how many bytes the API server allocated from the first write until the last taint
	// had changed, for whomever; 0: not measured.
	Allocated int64 `json:"allocated,omitempty"`

	// Requests of the subject by verb and resource, e.g. "patch nodes": 5000; Refused those of
	// them that failed, by code, e.g. "429": 12.
	Requests map[string]int `json:"requests"`
	Refused  map[string]int `json:"refused,omitempty"`
	// Left are the requests of the subject in the window after it was quiet, leases aside.
	Left map[string]int `json:"left,omitempty"`
	// LeftCPU is what it used in that window.
	LeftCPU time.Duration `json:"leftCPU"`

	// EtcdBytes and EtcdPuts went into etcd meanwhile, by whoever.
	EtcdBytes int64 `json:"etcdBytes"`
	EtcdPuts  int64 `json:"etcdPuts"`

	// Extra are numbers of single scenarios, e.g. "wasted patches": 0; and how many "changes" of
	// nodes the phase asked for, "flips" of a node that flaps, and "births" of which events tell.
	Extra map[string]float64 `json:"extra,omitempty"`

	// Attempts are the runs of the phase in their order. A file from before has none of a phase that
	// was run once, or of which it kept only the best.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// Quantiles of durations.
type Quantiles struct {
	Count int           `json:"count"`
	P50   time.Duration `json:"p50"`
	P90   time.Duration `json:"p90"`
	P99   time.Duration `json:"p99"`
	Max   time.Duration `json:"max"`
}

// Attempt is what one run of a phase took, how fast the machine was and how much of it was stolen:
// see Phase.
type Attempt struct {
	Turn

	Took   time.Duration `json:"took"`
	Work   time.Duration `json:"work,omitempty"`
	Stolen *float64      `json:"stolen,omitempty"`
	CPU    time.Duration `json:"cpu"`
}
