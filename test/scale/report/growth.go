package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// GrowthFile and RatiosFile are the names under which the page shows the pictures.
const (
	GrowthFile = "performance-growth.svg"
	RatiosFile = "performance-ratios.svg"
)

// measurePoint is what a subject needed with so many nodes.
type measurePoint struct {
	nodes int
	value time.Duration
}

// curve is one subject over numbers of nodes.
type curve struct {
	subject string
	index   int
	points  []measurePoint
}

// Growth draws what happens when all nodes flip, over the number of nodes: the time until the
// last taint changed, and the CPU that one change costs. Scales are linear and begin at 0: a
// straight line on the left and a level one on the right are a flat cost for a node. Other
// subjects may leave the picture: their numbers stand at its upper edge.
func Growth(run Run) []byte {
	c := &canvas{width: 960, height: 396}
	rules, unfinished := run.fewestRules(), run.unfinished()
	left := panel{
		title: "Time until the last taint changed", remark: "all nodes flip; a straight line is a flat cost for a node",
		x: 24, width: 450, curves: run.curves(rules, run.slowest),
	}
	right := panel{
		title: "CPU of the controller for one change", remark: "of one node; a level line is a flat cost for a node",
		x: 492, width: 444, curves: run.curves(rules, run.cpuOfChange),
	}
	left.draw(c)
	right.draw(c)
	foot := fmt.Sprintf("%s; time of the slower of release and hold, CPU of both. %s", counted(rules, "rule"), unfinished)
	c.text(24, c.height-14, 12, start, "soft", fitting(foot, 12, c.width-48))
	return c.svg("Growth: time and CPU over the number of nodes", left.words()+" "+right.words()+" "+unfinished)
}

// fewestRules are those of the flips that the picture shows.
func (run *Run) fewestRules() int {
	fewest := 0
	for _, t := range run.trials() {
		if t.scenario == Flip && (fewest == 0 || t.rules < fewest) {
			fewest = t.rules
		}
	}
	return fewest
}

// slowest is the longest time of a phase, without what was stolen.
func (run *Run) slowest(r *Result) time.Duration {
	var longest time.Duration
	for i := range r.Phases {
		longest = max(longest, run.even(r.Phases[i].asAttempt(), Attempt.had))
	}
	return longest
}

// cpuOfChange is the CPU for one change of one node.
func (run *Run) cpuOfChange(r *Result) time.Duration {
	return run.medianCPU(r) / time.Duration(max(1, r.Nodes*len(r.Phases)))
}

// curves are those of all subjects that flipped so many rules. Of several modes or numbers of
// writers, the first that the run has counts.
func (run *Run) curves(rules int, value func(*Result) time.Duration) []curve {
	var all []curve
	for index, subject := range run.subjects() {
		points := map[int]time.Duration{}
		for i := range run.Results {
			r := &run.Results[i]
			if _, there := points[r.Nodes]; there || r.Scenario != Flip || r.Subject != subject || r.Rules != rules || r.Problem != "" {
				continue
			}
			if measured := value(r); measured > 0 {
				points[r.Nodes] = measured
			}
		}
		c := curve{subject: subject, index: styled(index)}
		for nodes, measured := range points {
			c.points = append(c.points, measurePoint{nodes, measured})
		}
		slices.SortFunc(c.points, func(a, b measurePoint) int { return cmp.Compare(a.nodes, b.nodes) })
		all = append(all, c)
	}
	return all
}

// unfinished says who did not get through a flip, and at which size.
func (run *Run) unfinished() string {
	var all []string
	for _, r := range run.Results {
		if r.Scenario == Flip && r.Problem != "" {
			all = append(all, fmt.Sprintf("%s did not finish with %s.", r.Subject, counted(r.Nodes, "node")))
		}
	}
	return strings.Join(unique(all), " ")
}
