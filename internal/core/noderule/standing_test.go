package noderule_test

import (
	"testing"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
)

func TestHoldOf(t *testing.T) {
	recorded := func(value string) *noderule.Node {
		return worker(nodeCreatedAt(dayOne), tainted(hold), annotated(holdKey("net"), value))
	}
	for name, c := range map[string]struct {
		node *noderule.Node
		want noderule.HoldRecord
		none bool
	}{
		"added":                   {node: recorded(`{"origin":"added","since":"2026-03-01T12:00:00Z"}`), want: noderule.HoldRecord{Origin: noderule.OriginAdded, Since: noon}},
		"created: since creation": {node: recorded(`{"origin":"created"}`), want: noderule.HoldRecord{Origin: noderule.OriginCreated, Since: dayOne}},
		"labelled: who knows":     {node: recorded(`{"origin":"labelled"}`), want: noderule.HoldRecord{Origin: noderule.OriginLabelled}},
		"a forged time":           {node: recorded(`{"origin":"added","since":"yesterday"}`), want: noderule.HoldRecord{Origin: noderule.OriginAdded}},
		"an unreadable one":       {node: recorded(`{`), none: true},
		"none":                    {node: worker(tainted(hold)), none: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, there := noderule.HoldOf(compiled(rule("net")), c.node)
			if there == c.none || got.Origin != c.want.Origin || !got.Since.Equal(c.want.Since) {
				t.Errorf("got %+v, %v", got, there)
			}
		})
	}
}

// An applied plan settles every rule that is enforced, and a hold equals its record.
func TestAnAppliedPlanSettles(t *testing.T) {
	r := rule("net")
	book := noderule.NewRulebook(rules(r))
	node := worker()
	held := book.Plan(node, noon).Apply(node)
	standing := noderule.Stand(book.Rules()[0], held, noon)
	if hold, _ := noderule.HoldOf(book.Rules()[0], held); !standing.Settled() || !standing.Holding() || !hold.Since.Equal(noon.Truncate(time.Second)) {
		t.Errorf("held: %+v, since %v", standing, hold.Since)
	}
	reports("NetworkReady", True)(held)
	if standing = noderule.Stand(book.Rules()[0], held, noon); standing.Settled() || !standing.Holding() {
		t.Errorf("ready, still tainted: %+v", standing)
	}
}
