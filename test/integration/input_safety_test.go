package integration_test

import "testing"

func TestInputOfBadSafetyFieldsIsRefused(t *testing.T) {
	const (
		away   = "spec.maxUnavailable"
		number = "a number of nodes from 0 to 1000000, e.g. 1, or a percentage from 0% to 100%, e.g. 10%"
		ready  = "spec.minReadySeconds"
		scope  = "spec.bootstrapScope"
		limit  = "spec.progressDeadlineSeconds"
		action = "spec.onDeadline"
		age    = "spec.conditions[0].maxAge"

		tolerations = "spec.tolerations"
	)
	refused{
		"maxUnavailable negative":      {edits{away: "-1"}, away, number},
		"maxUnavailable a word":        {edits{away: "some"}, away, number},
		"maxUnavailable without end":   {edits{away: "3000000000"}, away, number}, // more than typed clients can read
		"maxUnavailable over 100%":     {edits{away: "101%"}, away, number},
		"maxUnavailable a bare text":   {edits{away: "'10'"}, away, number},
		"maxUnavailable a fraction":    {edits{away: "1.5"}, away, "must be of type"},
		"maxUnavailable for bootstrap": {edits{away: "1", "spec.enforcementMode": "bootstrap-only"}, away, "or use enforcementMode continuous"},

		"minReadySeconds negative": {edits{ready: "-1"}, ready, "greater than or equal to 0"},
		"minReadySeconds a day up": {edits{ready: "86401"}, ready, "less than or equal to 86400"},
		"minReadySeconds a text":   {edits{ready: "10s"}, ready, "must be of type integer"},

		"bootstrapScope unknown":        {edits{scope: "Reboot", "spec.enforcementMode": "bootstrap-only"}, scope, `supported values: "Node", "Boot"`},
		"bootstrapScope for continuous": {edits{scope: "Boot"}, scope, "or use enforcementMode bootstrap-only"},
		"bootstrapScope that evicts":    {edits{scope: "Boot", "spec.enforcementMode": "bootstrap-only", "spec.taint.effect": "NoExecute"}, scope, "use NoSchedule"},

		"deadline too early":       {edits{limit: "60", ready: "60"}, limit, "must be greater than minReadySeconds"},
		"deadline zero":            {edits{limit: "0"}, limit, "greater than or equal to 1"},
		"onDeadline unknown":       {edits{limit: "60", action: "Evict"}, action, `supported values: "Report", "Release"`},
		"onDeadline without a one": {edits{action: "Release"}, action, "set progressDeadlineSeconds"},

		"maxAge too short": {edits{"spec.conditions.0.maxAge": "59s"}, age, "of at least 60s"},
		"maxAge a number":  {edits{"spec.conditions.0.maxAge": "60"}, age, "must be of type string"},
		"maxAge a word":    {edits{"spec.conditions.0.maxAge": "soon"}, age, "must be a duration in h, m and s of at least 60s, e.g. 2m"},

		"tolerations of all":         {edits{tolerations: "{}"}, tolerations, "a daemonSetSelector, a namespaceSelector or both"},
		"tolerations of none":        {edits{tolerations: "{daemonSetSelector: {}}"}, tolerations + ".daemonSetSelector", "the selector must not be empty"},
		"tolerations by a bad word":  {edits{tolerations: "{daemonSetSelector: {matchExpressions: [{key: a, operator: Is, values: [b]}]}}"}, tolerations + ".daemonSetSelector.matchExpressions[0].operator", `supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
		"tolerations by a bad value": {edits{tolerations: "{namespaceSelector: {matchLabels: {a: b c}}}"}, tolerations + ".namespaceSelector.matchLabels[a]", "label value must be"},

		"dependsOn twice":    {edits{"spec.dependsOn": "[a, a]"}, "spec.dependsOn[1]", "Duplicate value"},
		"dependsOn an empty": {edits{"spec.dependsOn": "['']"}, "spec.dependsOn[0]", "at least 1 chars"},
	}.run(t)
}
