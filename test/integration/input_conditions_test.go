package integration_test

import (
	"fmt"
	"strings"
	"testing"
)

// conditions is a list of this many requirements.
func conditions(n int) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "- {type: example.com/Ready%d, requiredStatus: 'True'}\n", i)
	}
	return list.String()
}

func TestInputOfBadConditionsIsRefused(t *testing.T) {
	const (
		list           = "spec.conditions"
		first          = "spec.conditions[0]"
		conditionType  = "spec.conditions[0].type"
		requiredStatus = "spec.conditions[0].requiredStatus"
		defaultStatus  = "spec.conditions[0].defaultStatus"
		statuses       = `supported values: "True", "False", "Unknown"`
	)
	refused{
		"conditions missing":        {edits{"spec.conditions": absent}, list, "Required value"},
		"conditions null":           {edits{"spec.conditions": "null"}, list, "Required value"},
		"conditions empty":          {edits{"spec.conditions": "[]"}, list, "at least 1 item"},
		"conditions a map":          {edits{"spec.conditions": "{}"}, list, "must be of type array"},
		"conditions a text":         {edits{"spec.conditions": "NetworkReady"}, list, "must be of type array"},
		"conditions one too many":   {edits{"spec.conditions": conditions(33)}, list, "must have at most 32 items"},
		"conditions with null":      {edits{"spec.conditions": "[null]"}, first, "must be of type object"},
		"conditions of plain texts": {edits{"spec.conditions": "[NetworkReady]"}, first, "must be of type object"},
		"the same type twice": {
			edits{"spec.conditions": "[{type: A, requiredStatus: 'True'}, {type: A, requiredStatus: 'True'}]"},
			"spec.conditions[1]", `Duplicate value: {"type":"A"}`,
		},
		"the same type with contrary statuses": {
			edits{"spec.conditions": "[{type: A, requiredStatus: 'True'}, {type: A, requiredStatus: 'False'}]"},
			"spec.conditions[1]", `Duplicate value: {"type":"A"}`,
		},

		"type missing":           {edits{"spec.conditions.0.type": absent}, conditionType, "Required value"},
		"type null":              {edits{"spec.conditions.0.type": "null"}, conditionType, "Required value"},
		"type empty":             {edits{"spec.conditions.0.type": "''"}, conditionType, "at least 1 chars long"},
		"type a number":          {edits{"spec.conditions.0.type": "5"}, conditionType, "must be of type string"},
		"type a list":            {edits{"spec.conditions.0.type": "[A, B]"}, conditionType, "must be of type string"},
		"type one char too long": {edits{"spec.conditions.0.type": strings.Repeat("a", 317)}, conditionType, "may not be more than 316"},
		"type of one MiB":        {edits{"spec.conditions.0.type": strings.Repeat("a", 1<<20)}, conditionType, "may not be more than 316"},

		"requiredStatus missing":                {edits{"spec.conditions.0.requiredStatus": absent}, requiredStatus, "Required value"},
		"requiredStatus null":                   {edits{"spec.conditions.0.requiredStatus": "null"}, requiredStatus, "Required value"},
		"requiredStatus empty":                  {edits{"spec.conditions.0.requiredStatus": "''"}, requiredStatus, statuses},
		"requiredStatus True without quotes":    {edits{"spec.conditions.0.requiredStatus": "True"}, requiredStatus, statuses},
		"requiredStatus False without quotes":   {edits{"spec.conditions.0.requiredStatus": "False"}, requiredStatus, "must be of type string"},
		"requiredStatus in lower case":          {edits{"spec.conditions.0.requiredStatus": "'true'"}, requiredStatus, statuses},
		"requiredStatus of another vocabulary":  {edits{"spec.conditions.0.requiredStatus": "Ready"}, requiredStatus, statuses},
		"requiredStatus with a space":           {edits{"spec.conditions.0.requiredStatus": "'True '"}, requiredStatus, statuses},
		"requiredStatus with a newline":         {edits{"spec.conditions.0.requiredStatus": `"True\n"`}, requiredStatus, statuses},
		"requiredStatus with a Cyrillic letter": {edits{"spec.conditions.0.requiredStatus": quoted("\u0422rue")}, requiredStatus, statuses},
		"requiredStatus a list":                 {edits{"spec.conditions.0.requiredStatus": "['True', 'False']"}, requiredStatus, "must be of type string"},

		"defaultStatus empty":               {edits{"spec.conditions.0.defaultStatus": "''"}, defaultStatus, statuses},
		"defaultStatus True without quotes": {edits{"spec.conditions.0.defaultStatus": "True"}, defaultStatus, statuses},
		"defaultStatus in lower case":       {edits{"spec.conditions.0.defaultStatus": "unknown"}, defaultStatus, statuses},
		"defaultStatus with bootstrap-only": {
			edits{"spec.conditions.0.defaultStatus": "'False'", "spec.enforcementMode": bootstrapOnly},
			list, "defaultStatus cannot be used with enforcementMode bootstrap-only",
		},
		"defaultStatus of the last of 32 with bootstrap-only": {
			edits{"spec.conditions": conditions(31) + "- {type: A, requiredStatus: 'True', defaultStatus: 'True'}", "spec.enforcementMode": bootstrapOnly},
			list, "remove defaultStatus, or use enforcementMode continuous",
		},
	}.run(t)
}

func TestInputOfBadModesIsRefused(t *testing.T) {
	const (
		policy = "spec.conditionPolicy"
		mode   = "spec.enforcementMode"
		dryRun = "spec.dryRun"
		modes  = `supported values: "bootstrap-only", "continuous"`
	)
	refused{
		"conditionPolicy empty":              {edits{policy: "''"}, policy, `supported values: "allOf", "anyOf"`},
		"conditionPolicy in other case":      {edits{policy: "AllOf"}, policy, `supported values: "allOf", "anyOf"`},
		"conditionPolicy of another API":     {edits{policy: "oneOf"}, policy, `supported values: "allOf", "anyOf"`},
		"conditionPolicy a list":             {edits{policy: "[anyOf]"}, policy, "must be of type string"},
		"anyOf with bootstrap-only":          {edits{policy: "anyOf", mode: bootstrapOnly}, policy, "anyOf cannot be used with enforcementMode bootstrap-only"},
		"enforcementMode missing":            {edits{mode: absent}, mode, "Required value"},
		"enforcementMode null":               {edits{mode: "null"}, mode, "Required value"},
		"enforcementMode empty":              {edits{mode: "''"}, mode, modes},
		"enforcementMode in other case":      {edits{mode: "Continuous"}, mode, modes},
		"enforcementMode with an underscore": {edits{mode: "bootstrap_only"}, mode, modes},
		"enforcementMode with a dash-alike":  {edits{mode: quoted("bootstrap\u2011only")}, mode, modes},
		"enforcementMode of two":             {edits{mode: "[bootstrap-only, continuous]"}, mode, "must be of type string"},
		"enforcementMode a template":         {edits{mode: "'{{ .Values.mode }}'"}, mode, modes},
		"dryRun a text":                      {edits{dryRun: "'true'"}, dryRun, "must be of type boolean"},
		"dryRun a number":                    {edits{dryRun: "1"}, dryRun, "must be of type boolean"},
		"spec missing":                       {edits{"spec": absent}, "spec", "Required value"},
		"spec null":                          {edits{"spec": "null"}, "spec", "Required value"},
		"spec empty":                         {edits{"spec": "{}"}, "spec.conditions", "Required value"},
		"spec a text":                        {edits{"spec": "bootstrap-only"}, "spec", "must be of type object"},
		"spec a list of rules":               {edits{"spec": "[{}]"}, "spec", "must be of type object"},
	}.run(t)
}

func TestInputOfOddConditionsIsAccepted(t *testing.T) {
	name := func(text string) edits { return edits{"spec.conditions.0.type": quoted(text)} }
	accepted{
		"as it is":                              {},
		"32 conditions":                         {edits: edits{"spec.conditions": conditions(32)}},
		"type of one char":                      {edits: name("a")},
		"type of 316 chars":                     {edits: name(strings.Repeat("a", 316))},
		"type of 316 emoji":                     {edits: name(strings.Repeat("🚀", 316))},
		"type in two directions":                {edits: name("\u202eydaeR\u202c/מוכן")},
		"type with a newline":                   {edits: name("Network\nReady")},
		"type with NUL":                         {edits: name("Network\x00Ready")},
		"type with shell text":                  {edits: name("$(reboot); `reboot` | tee ../../etc/passwd")},
		"type with SQL":                         {edits: name("'; DROP TABLE nodes; --")},
		"type with CEL":                         {edits: name(`' || true || self.conditions.exists(c, c.type == "`)},
		"type with a template":                  {edits: name("{{ .Values.condition }}")},
		"type with printf verbs":                {edits: name("%s%d%n%!v(MISSING)")},
		"type with HTML":                        {edits: name("<script>alert(1)</script>")},
		"types that differ in case only":        {edits: edits{"spec.conditions": "[{type: ready, requiredStatus: 'True'}, {type: Ready, requiredStatus: 'True'}]"}},
		"a negative condition":                  {edits: edits{"spec.conditions": "[{type: example.com/Broken, requiredStatus: 'False'}]"}},
		"anyOf of one":                          {edits: edits{"spec.conditionPolicy": "anyOf"}},
		"allOf with bootstrap-only":             {edits: edits{"spec.conditionPolicy": "allOf", "spec.enforcementMode": bootstrapOnly}},
		"defaultStatus null, which is absent":   {edits: edits{"spec.conditions.0.defaultStatus": "null"}},
		"conditionPolicy null, which is absent": {edits: edits{"spec.conditionPolicy": "null"}},
		"dryRun null, which is absent":          {edits: edits{"spec.dryRun": "null"}},
		"dryRun false":                          {edits: edits{"spec.dryRun": "false"}},
		"dryRun no, which YAML says false":      {edits: edits{"spec.dryRun": "no"}},
		"a default that is not enough":          {edits: edits{"spec.conditions.0.defaultStatus": "'False'"}},
	}.run(t)
}
