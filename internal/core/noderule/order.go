package noderule

import (
	"fmt"
	"slices"
	"strings"
)

// maxAfter is how many rules one may depend on, directly or not: each costs every look at a node.
const maxAfter = 32

// order settles which rules come after which. Of rules that depend on each other in a cycle the
// youngest is held to the others no longer, and one that only previews before those that do not. All
// else that it says goes on: a rule that did nothing because somebody changed another one would
// release the nodes that it holds. Names of rules that do not exist wait for nobody.
func (b *Rulebook) order() {
	byName := map[string]*Rule{} // of rules that take part, older ones first
	join := func(rule *Rule) {
		byName[rule.Name] = rule
		if path := cycle(rule, byName); path != nil {
			rule.Unordered = cyclic(path)
		}
	}
	for _, previews := range []bool{false, true} {
		for _, rule := range b.rules {
			if rule.Problem == nil && !rule.Deleting && rule.DryRun == previews {
				join(rule)
			}
		}
	}
	for _, rule := range b.rules {
		if rule.Problem == nil {
			rule.after = reachable(rule, byName)
		}
		if len(rule.after) > maxAfter {
			rule.Unordered = fmt.Sprintf("the rule depends on %d rules, directly or not, and at most %d are possible: name fewer", len(rule.after), maxAfter)
			rule.after = nil
		}
	}
}

// precedents are the names of the rules that the rule comes after by its own words.
func (r *Rule) precedents() []string {
	if r.Unordered != "" {
		return nil
	}
	return r.DependsOn
}

// cycle is a way from the rule along dependencies back to it, nil if there is none.
func cycle(rule *Rule, byName map[string]*Rule) []string {
	seen := map[string]bool{}
	var walk func(from *Rule, path []string) []string
	walk = func(from *Rule, path []string) []string {
		for _, name := range from.precedents() {
			if name == rule.Name {
				return append(path, name)
			}
			next := byName[name]
			if next == nil || seen[name] {
				continue
			}
			seen[name] = true
			if found := walk(next, append(path, name)); found != nil {
				return found
			}
		}
		return nil
	}
	return walk(rule, []string{rule.Name})
}

// reachable are the rules that the rule depends on, directly or not, nearest first.
func reachable(rule *Rule, byName map[string]*Rule) []*Rule {
	var after []*Rule
	for next := []*Rule{rule}; len(next) > 0; next = next[1:] {
		for _, name := range next[0].precedents() {
			if other := byName[name]; other != nil && other != rule && !slices.Contains(after, other) {
				after, next = append(after, other), append(next, other)
			}
		}
	}
	return after
}

func cyclic(path []string) string {
	return fmt.Sprintf("rules depend on each other in a cycle (%s), so none of them could ever look at a node first, and this one, the last of them, waits for nobody: "+
		"remove one of the names", strings.Join(path, " → "))
}

// Defer lets verdicts wait for those that they depend on and that take the node away now: what a limit
// allows is known only once it was asked. A rule that only previews takes nothing away. It returns those that it
// changed.
func Defer(verdicts []Verdict, node *Node) []Verdict {
	var changed []Verdict
	for i := range verdicts {
		v := &verdicts[i]
		if v.State == NotSelected || v.Completed || v.Cause == CauseDependency {
			continue
		}
		first := slices.IndexFunc(verdicts, func(other Verdict) bool {
			return other.Rule.Active() && other.Takes(node) && slices.Contains(v.Rule.after, other.Rule)
		})
		if first < 0 {
			continue
		}
		*v = Verdict{Rule: v.Rule, State: meanwhile(v.Rule, node, v.State), Cause: CauseDependency, WaitsFor: verdicts[first].Rule}
		changed = append(changed, *v)
	}
	return changed
}

// Strangers are the names in a rule's dependsOn that no rule has.
func (b *Rulebook) Strangers(rule *Rule) []string {
	var strangers []string
	for _, name := range rule.DependsOn {
		if !slices.ContainsFunc(b.rules, func(r *Rule) bool { return r.Name == name }) {
			strangers = append(strangers, name)
		}
	}
	return strangers
}
