// Package report renders the results of the scale benchmark as docs/explanation/performance.md, and checks their counts.
// It is pure: the same run always gives the same page.
package report

import "time"

// Run has the results of one execution of the benchmark.
type Run struct {
	Machine Machine   `json:"machine"`
	Command string    `json:"command"`
	Version string    `json:"version"` // of the manager
	Date    time.Time `json:"date"`
	// Note is a remark on this run for the page.
	Note    string   `json:"note,omitempty"`
	Results []Result `json:"results"`
}

// Machine is the machine of a run.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int64  `json:"memory"` // bytes
	System string `json:"system"`
	Go     string `json:"go"`
}

// Subjects.
const (
	// Ours is Readygate's manager.
	Ours = "readygate"
	// Floor is a minimal controller: one watch, one PATCH per node, no status, no events.
	Floor = "floor"
	// LoadOnly is the load without a controller.
	LoadOnly = "load"
)

// Phases. A release and the hold after it are a flip of all nodes.
const (
	Release = "release" // the condition of every node becomes True, as fast as the API server accepts it
	Hold    = "hold"    // the condition of every node becomes False, as fast as the API server accepts it
	Join    = "join"    // nodes are created with the taint at a rate, and become ready later
	Restart = "restart" // a tenth of the nodes changed while the controller was stopped; it starts
	Steady  = "steady"  // heartbeats only
)

// phases has the order of the page.
var phases = []string{Release, Hold, Join, Restart, Steady}

// Result is one phase of one subject. Zero means not measured.
type Result struct {
	Phase   string `json:"phase"`
	Subject string `json:"subject"`
	Nodes   int    `json:"nodes"`
	Rules   int    `json:"rules"`
	// Pair counts from 1. Results of a phase with the same pair were measured one after the other.
	Pair int `json:"pair"`

	// Changes is the number of nodes whose taints must change.
	Changes int `json:"changes,omitempty"`
	// Created is the number of nodes that are created during the phase. Each may have one more event. Untainted is the
	// number of them that were created without the taint.
	Created   int `json:"created,omitempty"`
	Untainted int `json:"untainted,omitempty"`

	// Took is the time from the first write of the load until the last taint changed, or until the load ended if no
	// taint must change. Quiet is the time from then until the subject's last write.
	Took  time.Duration `json:"took"`
	Quiet time.Duration `json:"quiet,omitempty"`
	// P99 is the time from a condition to the taint of its node. An independent watch receives both.
	P99 time.Duration `json:"p99,omitempty"`

	CPU  time.Duration `json:"cpu,omitempty"`  // of the subject, until it was quiet
	Peak int64         `json:"peak,omitempty"` // maximum resident bytes of the subject since its start
	// Allocated is the number of bytes that the API server allocated until the last taint changed. EtcdBytes is the number
	// of bytes that etcd received until the subject was quiet. Both include load and subject.
	Allocated int64 `json:"allocated,omitempty"`
	EtcdBytes int64 `json:"etcdBytes,omitempty"`

	// Requests counts the subject's requests by verb and resource, without leases and without those that the API
	// server throttled. Left counts those in the seconds after the subject was quiet.
	Requests map[string]int `json:"requests,omitempty"`
	Left     map[string]int `json:"left,omitempty"`

	// Problem is the error with which the phase ended.
	Problem string `json:"problem,omitempty"`
}
