package readiness_test

import (
	"testing"
	"time"

	"github.com/readygate/readygate/internal/readiness"
)

func TestHoldOf(t *testing.T) {
	recorded := func(value string) *readiness.Node {
		return worker(born(dayOne), tainted(hold), annotated(holdKey("net"), value))
	}
	for name, c := range map[string]struct {
		node *readiness.Node
		want readiness.Hold
		none bool
	}{
		"added":               {node: recorded(`{"origin":"added","since":"2026-03-01T12:00:00Z"}`), want: readiness.Hold{Origin: readiness.OriginAdded, Since: noon}},
		"born: since birth":   {node: recorded(`{"origin":"born"}`), want: readiness.Hold{Origin: readiness.OriginBorn, Since: dayOne}},
		"labelled: who knows": {node: recorded(`{"origin":"labelled"}`), want: readiness.Hold{Origin: readiness.OriginLabelled}},
		"a forged time":       {node: recorded(`{"origin":"added","since":"yesterday"}`), want: readiness.Hold{Origin: readiness.OriginAdded}},
		"an unreadable one":   {node: recorded(`{`), none: true},
		"none":                {node: worker(tainted(hold)), none: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, there := readiness.HoldOf(compiled(rule("net")), c.node)
			if there == c.none || got.Origin != c.want.Origin || !got.Since.Equal(c.want.Since) {
				t.Errorf("got %+v, %v", got, there)
			}
		})
	}
}

// A plan, applied, settles every rule that is enforced, and makes a hold what the record tells.
func TestAnAppliedPlanSettles(t *testing.T) {
	r := rule("net")
	book := readiness.NewRulebook(rules(r))
	node := worker()
	held := book.Plan(node, noon).Apply(node)
	standing := readiness.Stand(book.Rules()[0], held, noon)
	if hold, _ := readiness.HoldOf(book.Rules()[0], held); !standing.Settled() || !standing.Holding() || !hold.Since.Equal(noon.Truncate(time.Second)) {
		t.Errorf("held: %+v, since %v", standing, hold.Since)
	}
	reports("NetworkReady", True)(held)
	if standing = readiness.Stand(book.Rules()[0], held, noon); standing.Settled() || !standing.Holding() {
		t.Errorf("ready, still tainted: %+v", standing)
	}
}
