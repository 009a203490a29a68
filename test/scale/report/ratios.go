package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// measure is one column of bars.
type measure struct {
	name   string
	of     func(reading) ratio
	budget ratio  // 0: none
	only   string // the scenario that the budget is for; empty: all
}

var measures = []measure{
	{name: "time", of: reading.timeRatio, budget: timeLimit, only: Flip},
	{name: "CPU", of: reading.cpuRatio},
	{name: "bytes into etcd", of: reading.bytesRatio, budget: bytesLimit},
	{name: "requests", of: reading.requestsRatio},
}

func (m measure) limits(scenario string) bool {
	return m.budget > 0 && (m.only == "" || m.only == scenario)
}

const (
	ratiosTop   = 104.0 // of the first group
	namesLeft   = 156.0
	barsLeft    = 232.0
	columnWidth = 178.0
	barsWidth   = 124.0
	barHeight   = 12.0
	barStep     = 17.0
	groupGap    = 16.0
)

// group is the bars of one scenario.
type group struct {
	trial   *trial
	results []*Result // without the floor
	top     float64
	height  float64
}

// Ratios draws for each scenario, at the largest size that a subject got through, how many times
// the floor it needed: the worst phase counts. Budgets are lines. A bar that
// is too long is cut, and its number says how long it is.
func Ratios(run Run) []byte {
	groups := run.groups()
	bottom := ratiosTop
	for i := range groups {
		groups[i].top = bottom
		groups[i].height = max(barStep*float64(len(groups[i].results)), 30)
		bottom += groups[i].height + groupGap
	}
	c := &canvas{width: 960, height: bottom + 28}
	c.text(24, 32, 15, start, "ink bold", "How many times the floor")
	c.text(24, 51, 12, start, "soft", "The floor is the least that any controller must do: one watch, one PATCH a node, no status, no events. Shorter is better.")
	limit := run.longestBar(groups)
	for i, m := range measures {
		drawMeasure(c, m, barsLeft+columnWidth*float64(i), limit, groups, bottom)
	}
	var words []string
	for _, g := range groups {
		g.drawNames(c, run.subjects())
		for row, result := range g.results {
			words = append(words, g.drawBars(c, &run, result, row, limit))
		}
	}
	if words == nil {
		c.text(24, ratiosTop, 13, start, "soft", "not measured")
		words = []string{"not measured"}
	}
	c.text(24, c.height-16, 12, start, "soft", "The worse of release and hold counts. Each scenario at the largest size that was measured with the floor.")
	return c.svg("Ratios: what each scenario costs, as multiples of the floor", strings.Join(words, "; ")+".")
}

// groups are the trials that are shown: of each scenario, for each subject, the largest size with
// the fewest rules for which there is a ratio.
func (run *Run) groups() []group {
	type key struct{ scenario, subject string }
	trials, shown := run.trials(), map[key]*trial{}
	finished := map[*trial][]*Result{}
	for _, t := range trials {
		for _, result := range t.results {
			if result.Subject == Floor || result.Problem != "" || !run.compared(result) {
				continue
			}
			finished[t] = append(finished[t], result)
			k := key{t.scenario, result.Subject}
			if before := shown[k]; before == nil || t.rules <= before.rules && t.nodes > before.nodes {
				shown[k] = t
			}
		}
	}
	var all []group
	wanted := slices.Collect(maps.Values(shown))
	for _, t := range trials {
		if slices.Contains(wanted, t) {
			all = append(all, group{trial: t, results: finished[t]})
		}
	}
	return all
}

func (run *Run) compared(result *Result) bool {
	for _, m := range measures {
		if worst(run.read(result), m.of) > 0 {
			return true
		}
	}
	return false
}

// longestBar is where bars are cut: ours fit up to four times the floor.
func (run *Run) longestBar(groups []group) float64 {
	longest := 2.0
	for _, g := range groups {
		for _, m := range measures {
			if g.results[0].Subject == Ours {
				longest = max(longest, float64(worst(run.read(g.results[0]), m.of)))
			}
		}
	}
	return min(math.Ceil(longest*2-0.01)/2, 4)
}

// drawMeasure draws the head of a column, the line of the floor and that of the budget.
func drawMeasure(c *canvas, m measure, left, limit float64, groups []group, bottom float64) {
	c.text(left, 74, 13, start, "ink bold", m.name)
	if len(groups) == 0 {
		return
	}
	at := func(r ratio) float64 { return left + barsWidth*float64(r)/limit }
	c.line(left, ratiosTop-6, left, bottom-groupGap+6, "rule")
	c.line(at(1), ratiosTop-6, at(1), bottom-groupGap+6, "axis")
	c.text(at(1)-3, 91, 11, end, "soft", "floor")
	if m.budget == 0 {
		return
	}
	said := false
	for _, g := range groups {
		if m.limits(g.trial.scenario) {
			c.line(at(m.budget), g.top-6, at(m.budget), g.top+g.height+6, "budget")
			said = true
		}
	}
	if said {
		c.text(at(m.budget), 91, 11, start, "over", "budget "+plain(float64(m.budget), 1)+"×")
	}
}

func (g group) drawNames(c *canvas, subjects []string) {
	c.line(24, g.top-groupGap/2, c.width-24, g.top-groupGap/2, "rule")
	c.text(24, g.top+12, 13, start, "ink bold", fitting(titleOf(g.trial.scenario), 13, namesLeft-30))
	c.text(24, g.top+27, 11, start, "soft", fitting(g.trial.size(), 11, namesLeft-30))
	for row, result := range g.results {
		class := fmt.Sprintf("text%d", colourOf(subjects, result.Subject))
		c.text(barsLeft-8, g.bar(row)+barHeight-2, 11.5, end, class, fitting(result.Subject, 11.5, barsLeft-namesLeft))
	}
}

// bar is the upper edge of a bar; fewer bars than the names are high stand in the middle.
func (g group) bar(row int) float64 {
	all := barStep*float64(len(g.results)) - (barStep - barHeight)
	return g.top + (g.height-all)/2 + barStep*float64(row)
}

func colourOf(subjects []string, subject string) int {
	for i, s := range subjects {
		if s == subject {
			return styled(i)
		}
	}
	return 0
}

// drawBars draws what one subject needed, and returns it in words.
func (g group) drawBars(c *canvas, run *Run, result *Result, row int, limit float64) string {
	colour := colourOf(run.subjects(), result.Subject)
	y := g.bar(row)
	var words []string
	for i, m := range measures {
		left := barsLeft + columnWidth*float64(i)
		times := worst(run.read(result), m.of)
		if times == 0 {
			c.text(left+barsWidth+14, y+barHeight-2, 11.5, start, "soft", "–")
			continue
		}
		words = append(words, fmt.Sprintf("%s %v", m.name, times))
		long := barsWidth * min(float64(times)/limit, 1.04)
		c.rect(left, y, long, barHeight, fmt.Sprintf("fill%d", colour))
		if float64(times) > limit*1.04 {
			x := left + long - 14
			c.path("cut", false, x-3, y+barHeight+1, x+3, y-1)
			c.path("cut", false, x+2, y+barHeight+1, x+8, y-1)
		}
		class := "ink"
		if result.Subject == Ours && m.limits(g.trial.scenario) && times > m.budget {
			class = "over bold"
		}
		c.text(left+barsWidth+14, y+barHeight-2, 11.5, start, class, times.String())
	}
	return fmt.Sprintf("%s, %s, %s: %s", titleOf(g.trial.scenario), g.trial.size(), result.Subject, strings.Join(words, ", "))
}
