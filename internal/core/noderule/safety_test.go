package noderule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

const network = "NetworkReady"

func TestMinReadySeconds(t *testing.T) {
	wait := minReady(time.Minute)
	t.Run("a node is released when its requirements have been met for long enough", func(t *testing.T) {
		newLife(t, worker(), rule("net", wait)).want("held").
			pass(time.Hour).report(network, True).want("held").wantWhy(noderule.CauseMinReady, "").
			pass(59 * time.Second).want("held").
			pass(time.Second).want("released")
	})
	t.Run("an interruption restarts it", func(t *testing.T) {
		newLife(t, worker(), rule("net", wait)).
			report(network, True).pass(50*time.Second).
			report(network, False).pass(time.Second).
			report(network, True).pass(59 * time.Second).want("held").
			pass(time.Second).want("released")
	})
	t.Run("an unobserved interruption restarts it", func(t *testing.T) {
		l := newLife(t, worker(), rule("net", wait)).report(network, True).pass(50 * time.Second)
		l.do(func(n *noderule.Node) { // False and True again, between two reconciles
			setCondition(n, network, False, l.now)
			setCondition(n, network, True, l.now)
		})
		l.pass(59 * time.Second).want("held").pass(time.Second).want("released")
	})
	t.Run("a wrong transition time does not count", func(t *testing.T) {
		l := newLife(t, worker(), rule("net", wait))
		l.do(func(n *noderule.Node) { setCondition(n, network, True, l.now.Add(-time.Hour)) })
		l.want("held").pass(59 * time.Second).want("held").pass(time.Second).want("released")
	})
	t.Run("a clock that is ahead delays it by no more than it is ahead", func(t *testing.T) {
		l := newLife(t, worker(), rule("net", wait))
		l.do(func(n *noderule.Node) { setCondition(n, network, True, l.now.Add(30*time.Second)) })
		l.pass(time.Minute).want("held").pass(31 * time.Second).want("released")
	})
	t.Run("a node that was not held is not held for it", func(t *testing.T) {
		l := newLife(t, worker(reports(network, True)), rule("net", wait)).want("released")
		l.do(func(n *noderule.Node) { n.Conditions[0].LastTransitionTime.Time = l.now }).want("released")
	})
	t.Run("nor if its clock is ahead", func(t *testing.T) {
		l := newLife(t, worker(reports(network, True)), rule("net", wait)).want("released")
		l.do(func(n *noderule.Node) { n.Conditions[0].LastTransitionTime.Time = l.now.Add(2 * time.Second) }).want("released")
	})
	t.Run("but a new node waits for a bootstrap-only rule", func(t *testing.T) {
		n := worker(nodeCreatedAt(noon.Add(-time.Minute)))
		setCondition(n, network, True, noon.Add(-20*time.Second))
		newLife(t, n, rule("net", wait, bootstrapOnly)).want("held").
			pass(59*time.Second).want("held").pass(time.Second).want("released").
			report(network, False).want("released")
	})
	t.Run("and one that has been ready for long does not", func(t *testing.T) {
		n := worker(nodeCreatedAt(noon.Add(-2 * time.Hour)))
		setCondition(n, network, True, noon.Add(-time.Hour))
		newLife(t, n, rule("net", wait, bootstrapOnly)).want("released").wantChanges("Completed net")
	})
	t.Run("nor one that is older than the rule, whatever its conditions", func(t *testing.T) {
		n := worker(nodeCreatedAt(dayOne.Add(-time.Hour)))
		setCondition(n, network, True, noon.Add(-time.Second))
		newLife(t, n, rule("net", wait, bootstrapOnly)).want("released").wantChanges("Completed net")
	})
	t.Run("of anyOf the one that has been met for the longest time counts", func(t *testing.T) {
		r := rule("net", wait, anyOf, requires(requirement(network, True), requirement("Backup", True)))
		newLife(t, worker(), r).report(network, True).pass(30*time.Second).
			report("Backup", True).pass(29 * time.Second).want("held").
			pass(time.Second).want("released")
	})
	t.Run("it costs one note, and no event", func(t *testing.T) {
		newLife(t, worker(), rule("net", wait)).wantChanges("Added net").
			report(network, True).wantChanges("Noted net").
			pass(time.Minute).wantChanges("Removed net")
	})
}

func TestMaxAge(t *testing.T) {
	fresh := requires(maxAge(requirement(network, True), 2*time.Minute))
	t.Run("silence holds the node, on time", func(t *testing.T) {
		newLife(t, worker(), rule("net", fresh)).report(network, True).want("released").
			pass(2*time.Minute-time.Second).want("released").
			pass(time.Second).want("held").wantWhy("", "no heartbeat for more than 2m0s").
			pass(time.Hour).report(network, True).want("released")
	})
	t.Run("heartbeats keep it released, and cost nothing", func(t *testing.T) {
		l := newLife(t, worker(), rule("net", fresh)).report(network, True)
		l.changes = nil
		for range 20 {
			l.pass(time.Minute).report(network, True).want("released")
		}
		l.wantChanges()
	})
	t.Run("a condition without a heartbeat does not count", func(t *testing.T) {
		newLife(t, worker(reports(network, True)), rule("net", fresh)).want("held").wantWhy("", "it has no heartbeat")
	})
	t.Run("nor does one from a time to come", func(t *testing.T) {
		l := newLife(t, worker(), rule("net", fresh))
		l.do(func(n *noderule.Node) { setCondition(n, network, True, l.now.Add(time.Minute)) }).want("released")
		l.do(func(n *noderule.Node) { setCondition(n, network, True, l.now.Add(time.Minute+time.Second)) }).want("held").
			wantWhy("", "check the node's clock").
			pass(time.Hour).want("held"). // nor at that time: its reporter may have stopped
			report(network, True).want("released")
	})
	t.Run("it is recorded with the hold, in one patch", func(t *testing.T) {
		l := newLife(t, worker(reports("Ready", True)), rule("net", fresh, perBoot)).boot("a").report("Ready", True).report(network, True).want("released")
		l.do(func(n *noderule.Node) {
			setCondition(n, "Ready", Unknown, l.now)
			setCondition(n, network, True, l.now.Add(2*time.Minute))
		}).want("held") // and nothing is left to plan
	})
	t.Run("a status that must be Unknown is met by silence", func(t *testing.T) {
		r := rule("net", requires(maxAge(requirement(network, Unknown), 2*time.Minute)))
		newLife(t, worker(), r).want("released").report(network, True).want("held").pass(2 * time.Minute).want("released")
	})
	t.Run("a bootstrap-only rule that is done does not evaluate", func(t *testing.T) {
		newLife(t, worker(), rule("net", fresh, bootstrapOnly)).report(network, True).pass(time.Hour).want("released")
	})
	t.Run("silence interrupts minReadySeconds", func(t *testing.T) {
		newLife(t, worker(), rule("net", fresh, minReady(3*time.Minute))).report(network, True).
			pass(150*time.Second). // silent for 30 s
			report(network, True).pass(time.Minute).want("held").
			report(network, True).pass(119*time.Second).want("held").
			report(network, True).pass(time.Second).want("released")
	})
}

func TestBootstrapScopeBoot(t *testing.T) {
	up := func(t *testing.T, options ...ruleOption) *life {
		n := worker()
		n.BootID = "a"
		setCondition(n, "Ready", True, noon)
		l := newLife(t, n, rule("net", append([]ruleOption{perBoot}, options...)...)).want("held")
		return l.report(network, True).want("released").pass(time.Hour)
	}
	t.Run("a slow reboot: held before the node is back, until its network is", func(t *testing.T) {
		up(t).report("Ready", Unknown).want("held").wantWhy(noderule.CauseNotReady, "").
			pass(5*time.Minute).boot("b").want("held").wantWhy("", "not reported since the node booted").
			pass(time.Minute).report(network, False).want("held").
			report(network, True).want("released").
			pass(time.Hour).want("released")
	})
	t.Run("a reboot too quick to be noticed: held at once", func(t *testing.T) {
		up(t).boot("b").want("held").
			pass(time.Minute).report(network, True).want("released")
	})
	t.Run("not a reboot: released as soon as the node is Ready again", func(t *testing.T) {
		l := up(t)
		l.changes = nil
		l.report("Ready", False).want("held").pass(time.Minute).report("Ready", True).want("released").
			wantChanges("Added net", "Removed net")
	})
	t.Run("what was reported between two reconciles may be from before: the next report counts", func(t *testing.T) {
		up(t).report("Ready", Unknown).pass(time.Minute).
			do(func(n *noderule.Node) {
				setCondition(n, network, True, noon.Add(2*time.Hour)) // in the last moment
				n.BootID = "b"
				setCondition(n, "Ready", True, noon.Add(2*time.Hour))
			}).want("held").
			pass(2*time.Hour).report(network, True).want("released")
	})
	t.Run("a reporter that continues while the kubelet hangs reports for the previous boot", func(t *testing.T) {
		up(t).report("Ready", Unknown).want("held").pass(time.Minute).
			report(network, True).pass(time.Minute).report(network, True).want("held").
			pass(time.Minute).boot("b").want("held").
			pass(time.Minute).report(network, True).want("released")
	})
	t.Run("a reporter that continues while the kubelet hangs causes no write", func(t *testing.T) {
		l := up(t).report("Ready", Unknown).want("held").pass(time.Minute).report(network, True)
		l.changes = nil
		l.pass(time.Minute).report(network, True).pass(time.Minute).report(network, True).wantChanges()
	})
	t.Run("the time of being away is not one of being held", func(t *testing.T) {
		l := up(t, deadline(10*time.Minute), releaseStuck).report("Ready", Unknown).want("held").
			pass(20 * time.Minute).boot("b").want("held").
			pass(9 * time.Minute).want("held")
		l.changes = nil
		l.pass(time.Minute).want("released").wantChanges("Removed net", "Expired net", "Completed net")
	})
	t.Run("from Boot to Node and back, no node is held for a reboot in between", func(t *testing.T) {
		l := up(t)
		l.book = noderule.NewRulebook(rules(rule("net", bootstrapOnly)))
		l.reconcile()
		l.boot("b").want("released")
		l.book = noderule.NewRulebook(rules(rule("net", perBoot)))
		l.reconcile()
		l.want("released").boot("c").want("held")
	})
	t.Run("a second reboot before the network was up", func(t *testing.T) {
		up(t).report("Ready", Unknown).pass(time.Minute).
			boot("b").pass(time.Minute).report(network, False).pass(time.Minute).
			do(func(n *noderule.Node) { setCondition(n, network, True, noon.Add(90*time.Minute)); n.BootID = "c" }).want("held").
			pass(time.Hour).report(network, True).want("released")
	})
	t.Run("a reboot before the first release", func(t *testing.T) {
		n := worker()
		n.BootID = "a"
		setCondition(n, "Ready", True, noon)
		newLife(t, n, rule("net", perBoot, requires(requirement(network, True), requirement("Disk", True)))).
			report(network, True).want("held").pass(time.Minute).
			boot("b").report("Disk", True).want("held").wantWhy("", "not reported since").
			pass(time.Minute).report(network, True).want("released")
	})
	t.Run("a rule that gets bootstrapScope Boot later begins with the current boot", func(t *testing.T) {
		n := worker(completed("net"), reports("Ready", True))
		n.BootID = "a"
		newLife(t, n, rule("net", perBoot)).want("released").wantChanges("Noted net").boot("b").want("held")
	})
	t.Run("a node without a boot ID is not changed", func(t *testing.T) {
		newLife(t, worker(completed("net"), reports("Ready", True)), rule("net", perBoot)).want("released").wantChanges()
	})
	t.Run("a completion of the older form counts for the boot that the node is in", func(t *testing.T) {
		older := annotated(v1alpha1.CompletedPrefix+"net", `{"rule-name":"net"}`)
		ready := worker(older, reports("Ready", True))
		ready.BootID = "a"
		newLife(t, ready, rule("net", perBoot, takenOverAt(noon))).want("released").wantChanges("Noted net").boot("b").want("held")
		away := worker(older, reports("Ready", Unknown))
		away.BootID = "a"
		newLife(t, away, rule("net", perBoot, takenOverAt(noon))).want("held").pass(time.Minute).boot("b").want("held")
	})
	t.Run("a node whose network is there before it is Ready is released once", func(t *testing.T) {
		n := worker(reports("Ready", False))
		n.BootID = "a"
		newLife(t, n, rule("net", perBoot)).report(network, True).want("held").wantWhy(noderule.CauseNotReady, "[]").
			pass(time.Minute).report("Ready", True).want("released").wantChanges("Added net", "Removed net", "Completed net")
	})
	t.Run("the deadline does not release a node that is not Ready, which would be held again at once", func(t *testing.T) {
		n := worker(reports("Ready", False))
		n.BootID = "a"
		newLife(t, n, rule("net", perBoot, deadline(10*time.Minute), releaseStuck)).
			pass(10*time.Minute).want("held").wantChanges("Added net", "Stuck net").
			pass(time.Hour).want("held").wantChanges().
			report("Ready", True).want("released").wantChanges("Removed net", "Expired net", "Completed net").
			report("Ready", Unknown).want("held")
	})
	t.Run("a report in the second of the boot counts", func(t *testing.T) {
		up(t).do(func(n *noderule.Node) { setCondition(n, network, False, noon.Add(time.Hour)); n.BootID = "b" }).want("held").
			do(func(n *noderule.Node) { setCondition(n, network, True, noon.Add(time.Hour)) }).want("released")
	})
	t.Run("what is reported while another rule comes first counts", func(t *testing.T) {
		n := worker()
		n.BootID = "a"
		setCondition(n, "Ready", True, noon)
		disk := rule("disk", perBoot, younger, taintKey("readiness.k8s.io/DiskReady"), requires(requirement("Disk", True)), dependsOn("net"))
		l := newLife(t, n, rule("net", perBoot), disk).report("Disk", True).report(network, True).want("released").pass(time.Hour)
		l.boot("b").want("held").pass(time.Minute).
			report("Disk", True).want("held").pass(time.Minute).
			report(network, True).want("released")
	})
	t.Run("with scope Node a reboot does not count", func(t *testing.T) {
		n := worker()
		n.BootID = "a"
		newLife(t, n, rule("net", bootstrapOnly)).report(network, True).boot("b").want("released").
			report("Ready", Unknown).want("released")
	})
}

func TestProgressDeadline(t *testing.T) {
	t.Run("a node that is held too long is reported once", func(t *testing.T) {
		l := newLife(t, worker(), rule("net", deadline(10*time.Minute))).wantChanges("Added net")
		l.pass(10*time.Minute - time.Second).wantChanges().
			pass(time.Second).wantChanges("Stuck net").want("held").
			pass(24 * time.Hour).wantChanges().want("held")
		if s := noderule.Summarize(l.book.Rules()[0], one(l.node), l.now, 0); s.Stuck != 1 {
			t.Errorf("%d nodes are stuck, must be 1", s.Stuck)
		}
		l.report(network, True).wantChanges("Removed net")
		if s := noderule.Summarize(l.book.Rules()[0], one(l.node), l.now, 0); s.Stuck != 0 {
			t.Errorf("%d nodes are stuck, must be 0", s.Stuck)
		}
		l.report(network, False).pass(10*time.Minute).wantChanges("Added net", "Stuck net")
	})
	t.Run("a node created with the taint counts from its creation", func(t *testing.T) {
		n := worker(nodeCreatedAt(noon.Add(-5*time.Minute)), tainted(hold), annotated(holdKey("net"), `{"rule":"net","taint":"`+holdRecord+`","origin":"created"}`))
		newLife(t, n, rule("net", deadline(10*time.Minute))).pass(5 * time.Minute).wantChanges("Stuck net")
	})
	t.Run("a hold with an unknown start counts from the first evaluation", func(t *testing.T) {
		n := worker(tainted(hold), annotated(holdKey("net"), `{"rule":"net","taint":"`+holdRecord+`","origin":"labelled"}`))
		newLife(t, n, rule("net", deadline(10*time.Minute))).wantChanges("Noted net").pass(10 * time.Minute).wantChanges("Stuck net")
	})
	t.Run("with Release a continuous rule releases the node until the requirements were met once", func(t *testing.T) {
		newLife(t, worker(), rule("net", deadline(10*time.Minute), releaseStuck)).
			pass(10*time.Minute).want("released").wantChanges("Added net", "Removed net", "Expired net").wantWhy(noderule.CauseDeadline, network+" is Unknown").
			report(network, False).pass(24*time.Hour).want("released").wantChanges().
			report(network, True).want("released").wantChanges("Forgotten net").
			report(network, False).want("held").wantChanges("Added net")
	})
	t.Run("with Release a bootstrap-only rule is done", func(t *testing.T) {
		newLife(t, worker(), rule("net", deadline(10*time.Minute), releaseStuck, bootstrapOnly)).
			pass(10*time.Minute).want("released").wantChanges("Added net", "Removed net", "Expired net", "Completed net").
			pass(24 * time.Hour).want("released").wantChanges()
	})
	t.Run("with Release and maxAge, a new heartbeat is evaluated", func(t *testing.T) {
		r := rule("net", requires(maxAge(requirement(network, True), 2*time.Minute)), deadline(10*time.Minute), releaseStuck)
		l := newLife(t, worker(), r).report(network, True).want("released").pass(2 * time.Minute).want("held").pass(10 * time.Minute).want("released")
		before := *l.node
		l.report(network, True).want("released").wantWhy("", "")
		if !l.book.Concerns(&before, heard(&before, l.now)) {
			t.Error("a heartbeat of a node that was released by the deadline concerns no rule")
		}
		l.pass(2 * time.Minute).want("held")
	})
	t.Run("what expired is forgotten when the node is held again", func(t *testing.T) {
		release := noderule.NewRulebook(rules(rule("net", deadline(10*time.Minute), releaseStuck)))
		l := newLife(t, worker(), rule("net", deadline(10*time.Minute), releaseStuck)).pass(10 * time.Minute).want("released")
		l.book = noderule.NewRulebook(rules(rule("net", deadline(10*time.Minute))))
		l.reconcile()
		l.want("held").pass(5 * time.Minute)
		l.book = release
		l.reconcile()
		l.want("held").pass(5 * time.Minute).want("released")
	})
	t.Run("if Release becomes Report the node is held again", func(t *testing.T) {
		l := newLife(t, worker(), rule("net", deadline(10*time.Minute), releaseStuck)).pass(10 * time.Minute).want("released")
		l.book = noderule.NewRulebook(rules(rule("net", deadline(10*time.Minute))))
		l.reconcile()
		l.want("held")
	})
}

func TestDependsOn(t *testing.T) {
	disk := func(options ...ruleOption) *v1alpha1.NodeReadinessRule {
		return rule("disk", append([]ruleOption{younger, taintKey("readiness.k8s.io/DiskReady"), requires(requirement("DiskReady", True)), dependsOn("net")}, options...)...)
	}
	taints := func(l *life, want ...string) {
		t.Helper()
		wantEqual(t, "taints at "+l.clock(), taintStrings(l.node.Taints), want)
	}
	const diskHold = "readiness.k8s.io/DiskReady=pending:NoSchedule"
	t.Run("a new node waits for the first cause only", func(t *testing.T) {
		l := newLife(t, worker(tainted(hold, diskHold), owned("net", holdRecord), owned("disk", "readiness.k8s.io/DiskReady:NoSchedule")), rule("net"), disk())
		v := l.book.Evaluate(l.node, l.now).Verdicts[1]
		if v.Cause != noderule.CauseDependency || v.WaitsFor == nil || v.WaitsFor.Name != "net" {
			t.Errorf("disk says %q and waits for %v, must wait for net", v.Cause, v.WaitsFor)
		}
		l.report("DiskReady", True)
		taints(l, hold, diskHold) // not evaluated yet
		l.report(network, True)
		taints(l)
	})
	t.Run("there is no moment between the two", func(t *testing.T) {
		l := newLife(t, worker(), rule("net"), disk())
		taints(l, hold) // disk has not evaluated it
		l.report(network, True)
		taints(l, diskHold)
		l.wantChanges("Added net", "Removed net", "Added disk")
	})
	t.Run("while the first holds again, the second leaves the node as it is", func(t *testing.T) {
		l := newLife(t, worker(reports(network, True), reports("DiskReady", True)), rule("net"), disk())
		l.report(network, False).report("DiskReady", False)
		taints(l, hold)
		l.report(network, True)
		taints(l, diskHold)
	})
	t.Run("a bootstrap-only rule does not complete before it is evaluated", func(t *testing.T) {
		l := newLife(t, worker(reports("DiskReady", False)), rule("net"), disk(bootstrapOnly))
		wantEqual(t, "annotations", notes(l.node, "net", "disk"), []string{"net holds (added)"})
	})
	t.Run("a rule that does not exist, is in dry run or does not select the node blocks no rule", func(t *testing.T) {
		for _, other := range []*v1alpha1.NodeReadinessRule{rule("other"), rule("net", dryRun), rule("net", selects("role", "control"))} {
			l := newLife(t, worker(), other, disk(), rule("third", youngest, taintKey("readiness.k8s.io/Third")))
			if v := l.book.Evaluate(l.node, l.now).Verdicts[1]; v.Cause != "" || v.State != noderule.Held {
				t.Errorf("beside %s disk says %s %q", other.Name, v.State, v.Cause)
			}
		}
	})
	t.Run("the deadline of the second begins when the first has released the node", func(t *testing.T) {
		l := newLife(t, worker(tainted(hold, diskHold), owned("net", holdRecord), owned("disk", "readiness.k8s.io/DiskReady:NoSchedule")), rule("net"), disk(deadline(10*time.Minute), releaseStuck))
		l.pass(15*time.Minute).report(network, True)
		taints(l, diskHold)
		l.pass(10*time.Minute - time.Second)
		taints(l, diskHold)
		l.pass(time.Second)
		taints(l)
	})
	t.Run("each wait for the first restarts the deadline of the second, and it is reported again", func(t *testing.T) {
		l := newLife(t, worker(reports(network, True)), rule("net"), disk(deadline(10*time.Minute)))
		l.pass(10*time.Minute).wantChanges("Added disk", "Stuck disk")
		l.report(network, False).pass(time.Hour).report(network, True).pass(10 * time.Minute)
		if !slices.Contains(l.changes, "Stuck disk") {
			t.Errorf("changes are %v, without the second Stuck", l.changes)
		}
	})
	t.Run("a rule that has completed the node waits for no rule", func(t *testing.T) {
		l := newLife(t, worker(reports(network, True), reports("DiskReady", True)), rule("net"), disk(bootstrapOnly)).report(network, False)
		if v := l.book.Evaluate(l.node, l.now).Verdicts[1]; !v.Completed || v.Cause != "" {
			t.Errorf("disk says %q, completed: %v", v.Cause, v.Completed)
		}
	})
	t.Run("a taint that a user removes while the rule waits is added again", func(t *testing.T) {
		l := newLife(t, worker(tainted(hold, diskHold), owned("net", holdRecord), owned("disk", "readiness.k8s.io/DiskReady:NoSchedule")), rule("net"), disk())
		l.do(func(n *noderule.Node) { n.Taints = nil })
		taints(l, hold, diskHold)
	})
	t.Run("a rule that leaves the node released because of its limit blocks no rule", func(t *testing.T) {
		n := worker(reports("Ready", True), nodeCreatedAt(noon.Add(-time.Hour)))
		l := &life{t: t, book: noderule.NewRulebook(rules(rule("net", maxUnavailable("0")), disk())), node: n, now: noon}
		if v := l.book.Evaluate(l.node, l.now).Verdicts[1]; v.Cause != "" || v.State != noderule.Held {
			t.Errorf("disk says %s %q, must look at the node", v.State, v.Cause)
		}
	})
	t.Run("dependencies of dependencies count", func(t *testing.T) {
		third := rule("third", youngest, taintKey("readiness.k8s.io/Third"), requires(requirement("Third", True)), dependsOn("disk"))
		l := newLife(t, worker(reports("DiskReady", True)), rule("net"), disk(), third)
		if v := l.book.Evaluate(l.node, l.now).Verdicts[2]; v.Cause != noderule.CauseDependency || v.WaitsFor.Name != "net" {
			t.Errorf("third says %q, must wait for net, on which disk depends", v.Cause)
		}
	})
}

func TestDependencyCycleIsReportedAndRulesStayEnforced(t *testing.T) {
	for name, c := range map[string]struct {
		rules []*v1alpha1.NodeReadinessRule
		loser string
		words string
	}{
		"itself":         {rules(rule("a", dependsOn("a"))), "a", "a → a"},
		"two":            {rules(rule("a", dependsOn("b")), rule("b", younger, taintKey("readiness.k8s.io/b"), dependsOn("a"))), "b", "b → a → b"},
		"three":          {rules(rule("a", dependsOn("c")), rule("b", younger, taintKey("readiness.k8s.io/b"), dependsOn("a")), rule("c", youngest, taintKey("readiness.k8s.io/c"), dependsOn("b"))), "c", "c → b → a → c"},
		"with a preview": {rules(rule("a", dryRun, dependsOn("b")), rule("b", younger, taintKey("readiness.k8s.io/b"), dependsOn("a"))), "a", "a → b → a"},
		"not a cycle":    {rules(rule("a"), rule("b", younger, taintKey("readiness.k8s.io/b"), dependsOn("a")), rule("c", youngest, taintKey("readiness.k8s.io/c"), dependsOn("a", "b"))), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range noderule.NewRulebook(c.rules).Rules() {
				switch {
				case r.Problem != nil:
					t.Errorf("rule %s does nothing: %s", r.Name, r.Problem.Message)
				case r.Name != c.loser && r.Unordered != "":
					t.Errorf("rule %s: %s", r.Name, r.Unordered)
				case r.Name == c.loser && !strings.Contains(r.Unordered, c.words):
					t.Errorf("rule %s says %q, want %q in it", r.Name, r.Unordered, c.words)
				}
			}
		})
	}
}

// A rule waits for one of dependsOn that takes the node out of use, but not if that is in dry run or limited.
func TestRuleWaitsForADependencyThatHoldsTheNode(t *testing.T) {
	disk := rule("disk", younger, taintKey("readiness.k8s.io/DiskReady"), requires(requirement("DiskReady", True)), dependsOn("net"))
	book := noderule.NewRulebook(rules(rule("net", maxUnavailable("1")), disk))
	n := worker(reports("Ready", True), reports(network, False), reports("DiskReady", False), nodeCreatedAt(dayOne.Add(-time.Hour)))
	e := book.Evaluate(n, noon)
	if changed := e.ApplyDependencies(); !slices.Equal(changed, []int{1}) || e.Verdicts[1].WaitsFor == nil || e.Verdicts[1].WaitsFor.Name != "net" {
		t.Errorf("changed: %v, %+v", changed, e.Verdicts[1])
	}
	if plan := e.Plan(nil); len(plan.Changes) != 1 || plan.Changes[0].Rule != "net" {
		t.Errorf("the node is changed by %+v, want only net", plan.Changes)
	}
	e = book.Evaluate(n, noon)
	e.Verdicts[0].Limit() // maxUnavailable is reached
	if changed := e.ApplyDependencies(); len(changed) != 0 || e.Verdicts[1].State != noderule.Held {
		t.Errorf("disk waits for a rule that leaves the node released: %v", changed)
	}
	e = noderule.NewRulebook(rules(rule("net", maxUnavailable("1"), dryRun), disk)).Evaluate(n, noon)
	if changed := e.ApplyDependencies(); len(changed) != 0 || e.Verdicts[1].State != noderule.Held {
		t.Errorf("disk waits for a rule in dry run: %v", changed)
	}
}
