package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/scenario"
)

func TestEveryScenarioOfTheRepositoryIsValid(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*.yaml")
	if err != nil || len(files) < 14 {
		t.Fatalf("found %d scenarios: %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Parse(data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		expectations := 0
		for _, step := range s.Steps {
			if step.Expect != nil {
				expectations++
			}
		}
		if expectations == 0 || len(s.Always) == 0 {
			t.Errorf("%s proves nothing: %d expectations, %d invariants", file, expectations, len(s.Always))
		}
	}
}

func TestTheExampleIsValid(t *testing.T) {
	if _, err := scenario.Parse([]byte(scenario.Example)); err != nil {
		t.Error(err)
	}
}

// withSteps is a valid scenario that ends with these steps.
func withSteps(steps string) string {
	return "title: t\nabout: a\ncomponents: {net: {condition: example.com/NetworkReady}}\nsteps:\n- join: {name: w, count: 3}\n" + steps
}

func TestParseErrorsNameAValidValue(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want []string
	}{
		"nothing at all":                    {"", []string{"the file is empty", "title: A node joins"}},
		"no YAML":                           {"title: [", []string{"is not YAML"}},
		"a key twice":                       {"title: a\ntitle: b", []string{"is not YAML", "title"}},
		"an unknown field":                  {"titel: x", []string{`the file has no field "titel"`, "title, about, components, always, steps"}},
		"an unknown kind of step":           {withSteps("- jion: {}"), []string{`steps[1] has no field "jion"`, "say, pause, apply, delete, join"}},
		"an unknown field of a step":        {withSteps("- join: {nomen: x}"), []string{`steps[1].join has no field "nomen"`, "name, count, every"}},
		"an unknown field of a component":   {"title: t\nabout: a\ncomponents: {net: {type: x}}\nsteps: [{say: x}]", []string{`components.net has no field "type"`, "condition, interval"}},
		"a text where a list must be":       {"title: t\nabout: a\nsteps: x", []string{"steps is string, must be a list"}},
		"no title":                          {"about: a", []string{"title is empty", "The CNI guide"}},
		"no steps":                          {"title: t\nabout: a", []string{"steps is empty"}},
		"two things in one step":            {withSteps("- {say: x, pause: 1s}"), []string{"steps[1] has 2 fields (say, pause)", "exactly one of"}},
		"nothing in a step":                 {withSteps("- {}"), []string{"steps[1] has 0 fields"}},
		"an unknown invariant":              {"title: t\nabout: a\nalways: [x]\nsteps: [{say: x}]", []string{`always[0] is "x"`, "noEarlyPod, foreignTaintsStay, heldBeforeBack or noEarlyReady"}},
		"a duration that is none":           {withSteps("- pause: soon"), []string{`"soon"`, "e.g. 500ms"}},
		"a duration without a unit":         {withSteps("- pause: 3"), []string{"a duration is 3", "must be a string"}},
		"a negative duration":               {withSteps("- pause: -3s"), []string{`"-3s"`, "from 0s"}},
		"a component that is not there":     {withSteps("- component: {name: nut, nodes: [w-1], is: up}"), []string{`steps[1].component names the component "nut", must be one of net`}},
		"a health that is none":             {withSteps("- component: {name: net, nodes: [w-1], is: ill}"), []string{`.is is "ill", must be up, down or hangs`}},
		"a node that has not joined":        {withSteps("- component: {name: net, nodes: [w-9], is: up}"), []string{`.nodes has "w-9", which matches no node`}},
		"a change on no node":               {withSteps("- component: {name: net, nodes: [], is: up}"), []string{"nodes is empty"}},
		"a node that joins twice":           {withSteps("- join: {name: w-2}"), []string{"node w-2 has already joined"}},
		"no node at all":                    {withSteps("- join: {name: x, count: 0}"), []string{"count is 0"}},
		"a name that no object can have":    {withSteps("- join: {name: W_1}"), []string{`.name is "W_1"`, "lower-case letters"}},
		"a taint without an effect":         {withSteps("- join: {name: x, taints: [a=b]}"), []string{`"a=b"`, "key=value:effect"}},
		"a rule from nowhere":               {withSteps("- apply: {}"), []string{"either file or manifest"}},
		"a file outside of the repository":  {withSteps("- apply: {file: ../x.yaml}"), []string{"from the root of the repository"}},
		"a deployment of nothing":           {withSteps("- deploy: {name: x, pods: 0}"), []string{".pods is 0"}},
		"a heartbeat that is none":          {"title: t\nabout: a\ncomponents: {net: {condition: x, heartbeat: 10ms}}\nsteps: [{say: x}]", []string{"components.net.heartbeat is 10ms, must be at least 1s"}},
		"a DaemonSet without a name":        {withSteps("- daemonSet: {reports: example.com/N}"), []string{`steps[1].daemonSet.name is ""`, "lower-case letters"}},
		"a DaemonSet that reports nothing":  {withSteps("- daemonSet: {name: x}"), []string{"steps[1].daemonSet.reports is empty, must be the type of a node condition"}},
		"a DaemonSet that is made twice":    {withSteps("- daemonSet: {name: x, reports: a}\n- daemonSet: {name: x, reports: a}"), []string{"steps[2].daemonSet: DaemonSet x exists", "must have no reports"}},
		"a restart with other labels":       {withSteps("- daemonSet: {name: x, reports: a}\n- daemonSet: {name: x, labels: {a: b}}"), []string{"steps[2].daemonSet: DaemonSet x exists", "no labels"}},
		"a reboot of no node":               {withSteps("- reboot: {nodes: []}"), []string{"steps[1].reboot.nodes is empty"}},
		"a reboot of a node not joined yet": {withSteps("- reboot: {nodes: [w-9]}"), []string{`steps[1].reboot.nodes has "w-9", which matches no node`}},
		"a reboot that takes no time":       {withSteps("- reboot: {nodes: [w-1], takes: 0s}"), []string{"steps[1].reboot.takes is 0s, must be at least 1s", "absent"}},
		"an expectation of nothing":         {withSteps("- expect: {within: 3s}"), []string{"expects nothing", "held, released"}},
		"an expectation of time alone":      {withSteps("- expect: {for: 3s}"), []string{"expects nothing", "held, released"}},
		"a standing of no rule":             {withSteps("- expect: {standing: Enforced, held: 1}"), []string{"must have rule together with standing"}},
		"an amount that is none":            {withSteps("- expect: {held: many}"), []string{`"many"`, "a number or all"}},
		"why of a node that did not join":   {withSteps("- expect: {why: {node: x, contains: z}}"), []string{`.why.node is "x"`}},
		"a component that says nothing":     {"title: t\nabout: a\ncomponents: {net: {}}\nsteps: [{say: x}]", []string{"components.net must have either condition", "or podCondition"}},
		"a component that says it twice":    {"title: t\nabout: a\ncomponents: {net: {condition: a/B, podCondition: a/B}}\nsteps: [{say: x}]", []string{"components.net must have either condition"}},
		"a reporter of pods":                {"title: t\nabout: a\ncomponents: {net: {podCondition: a/B, interval: 1s}}\nsteps: [{say: x}]", []string{"components.net has podCondition", "must have no interval"}},
		"a time that a reporter takes":      {"title: t\nabout: a\ncomponents: {net: {condition: a/B, takes: 1s}}\nsteps: [{say: x}]", []string{"components.net.takes applies only to podCondition"}},
		"a component without an endpoint hangs": {
			"title: t\nabout: a\ncomponents: {net: {podCondition: a/B}}\nsteps: [{join: {name: w}}, {component: {name: net, nodes: [w], is: hangs}}]",
			[]string{`steps[1].component.is is "hangs", must be up or down`},
		},
		"a sandbox of pods that are not there": {withSteps("- newSandbox: {deploy: shop, nodes: [w-1]}"), []string{`steps[1].newSandbox.deploy is "shop", must be the name of an earlier deploy step`}},
		"a sandbox on no node":                 {withSteps("- deploy: {name: shop, pods: 1}\n- newSandbox: {deploy: shop, nodes: []}"), []string{"steps[2].newSandbox.nodes is empty"}},
		"a sandbox that is there at once":      {withSteps("- deploy: {name: shop, pods: 1}\n- newSandbox: {deploy: shop, nodes: [w-1], takes: 10ms}"), []string{"newSandbox.takes is 10ms, must be at least 1s"}},
		"why of a pod that is not deployed":    {withSteps("- expect: {why: {pod: shop, node: w-1, contains: z}}"), []string{`.why.pod is "shop", must be the name of an earlier deploy step`}},
		"the last component of no node":        {withSteps("- expect: {last: {node: x, component: z}}"), []string{`.last.node is "x"`}},
		"no last component":                    {withSteps("- expect: {last: {node: w-1}}"), []string{".last.component is empty", "e.g. policy"}},
		"an expectation of no pods":            {withSteps("- expect: {pods: {}}"), []string{"expects nothing", "pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Parse([]byte(test.file))
			if err == nil {
				t.Fatal("the scenario was accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want %q in it", err, want)
				}
			}
		})
	}
}
