package noderule

import (
	"fmt"
	"slices"
	"strings"
)

// maxAfter is the maximum number of rules that one rule may depend on, directly or not: each is evaluated for every node.
const maxAfter = 32

// order resolves dependsOn. Of rules that depend on each other in a cycle, the youngest does not wait, and one in dry
// run before those that are enforced. The rule is enforced otherwise: a rule that had no effect because another one
// changed would release the nodes that it holds. Names of rules that do not exist are ignored.
func (b *Rulebook) order() {
	byName := map[string]*Rule{} // oldest first
	join := func(rule *Rule) {
		byName[rule.Name] = rule
		if path := cycle(rule, byName); path != nil {
			rule.Unordered = cyclic(path)
		}
	}
	for _, dryRun := range []bool{false, true} {
		for _, rule := range b.rules {
			if rule.Problem == nil && !rule.Deleting && rule.DryRun == dryRun {
				join(rule)
			}
		}
	}
	for _, rule := range b.rules {
		if rule.Problem == nil {
			rule.after = reachable(rule, byName)
		}
		if len(rule.after) > maxAfter {
			rule.Unordered = fmt.Sprintf("the rule depends on %d rules, directly or not, and at most %d are allowed: remove names from dependsOn", len(rule.after), maxAfter)
			rule.after = nil
		}
	}
}

// dependencies are the names in the rule's dependsOn, unless they are ignored.
func (r *Rule) dependencies() []string {
	if r.Unordered != "" {
		return nil
	}
	return r.DependsOn
}

// cycle is a path from the rule along dependencies back to it; nil if there is none.
func cycle(rule *Rule, byName map[string]*Rule) []string {
	seen := map[string]bool{}
	var walk func(from *Rule, path []string) []string
	walk = func(from *Rule, path []string) []string {
		for _, name := range from.dependencies() {
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
		for _, name := range next[0].dependencies() {
			if other := byName[name]; other != nil && other != rule && !slices.Contains(after, other) {
				after, next = append(after, other), append(next, other)
			}
		}
	}
	return after
}

func cyclic(path []string) string {
	return fmt.Sprintf("rules depend on each other in a cycle (%s); this rule does not wait for the other rules: "+
		"remove one of the names from dependsOn", strings.Join(path, " → "))
}

// UnknownDependencies are the names in a rule's dependsOn that no rule has.
func (b *Rulebook) UnknownDependencies(rule *Rule) []string {
	var unknown []string
	for _, name := range rule.DependsOn {
		if !slices.ContainsFunc(b.rules, func(r *Rule) bool { return r.Name == name }) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
