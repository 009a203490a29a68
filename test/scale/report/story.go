package report

// story is what people are told about a scenario.
type story struct {
	title string
	text  string
}

// titleOf is what a scenario is called where people read of it.
func titleOf(scenario string) string {
	if s, ok := stories[scenario]; ok {
		return s.title
	}
	return scenario
}

var stories = map[string]story{
	Flip: {"All nodes flip", "The condition of every node changes, as fast as the API server takes it: first so that all nodes are released, " +
		"then so that all are held again."},
	Join: {"Nodes join", "Nodes join at a steady rate. Each is born held, becomes ready a while later, and is released. " +
		"Readygate has an event for both. How long it takes is the pace of the load."},
	Create: {"A rule is created", "A rule is created over nodes that are there and not ready: all of them are to be held."},
	Delete: {"A rule is deleted", "That rule is deleted: all nodes are to be released, and nothing of the rule may stay."},
	Many: {"100 rules", "All nodes flip, with 100 rules: 99 of the rules select no node. " +
		"What they cost is the difference to one rule, to whose floor it is compared."},
	Steady: {"Only heartbeats", "Nothing happens but the heartbeats of kubelets. Nothing is to be written."},
	Restart: {"A restart", "The controller is stopped as by a rollout, nodes change meanwhile, and it starts again. *First* is the time from its start to the first " +
		"taint that it changed, and a *wasted patch* is one of a node that had not changed."},
	Flap: {"One node flaps", "All nodes flip, while one node changes ten times a second. The others are not to wait for it."},
	Busy: {"A busy API server", "All nodes flip, through an API server that refuses requests with 429. It is not to be hammered: *refused* counts what it had to refuse."},
	Slow: {"A slow API server", "All nodes flip, through an API server that takes 500 ms for an answer."},
}
