package integration_test

import (
	"fmt"
	"strings"
	"testing"
)

const selectorField = "spec.nodeSelector"

// expression is a selector of one expression on top of the test's own label.
func expression(text string) edits {
	return edits{"spec.nodeSelector.matchExpressions": "[" + text + "]"}
}

// times is a flow list of this many items; %d is the place in the list.
func times(n int, item string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(item, i)
	}
	return strings.Join(items, ", ")
}

func TestInputOfEmptySelectorsIsRefused(t *testing.T) {
	const empty = "nodeSelector must not be empty: an empty selector would hold every node, control plane included; name at least one label, e.g. matchLabels {kubernetes.io/os: linux}"
	is := func(text string) edits { return edits{selectorField: text} }
	refused{
		"missing":                {is(absent), selectorField, "Required value"},
		"null":                   {is("null"), selectorField, "Required value"},
		"nothing in it":          {is("{}"), selectorField, empty},
		"no labels":              {is("{matchLabels: {}}"), selectorField, empty},
		"labels null":            {is("{matchLabels: null}"), selectorField, empty},
		"no expressions":         {is("{matchExpressions: []}"), selectorField, empty},
		"expressions null":       {is("{matchExpressions: null}"), selectorField, empty},
		"no labels nor any more": {is("{matchLabels: {}, matchExpressions: []}"), selectorField, empty},
		"a text":                 {is("pool=workers"), selectorField, "must be of type object"},
		"a list of texts":        {is("[workers]"), selectorField, "must be of type object"},
	}.run(t)
}

func TestInputOfBadLabelsIsRefused(t *testing.T) {
	const (
		labels = "spec.nodeSelector.matchLabels"
		right  = "label value must be empty or consist of alphanumeric characters, '-', '_' or '.', with an alphanumeric character at both ends"
		length = "label key must be 1-317 characters, e.g. 'node-role.kubernetes.io/worker'"
	)
	of := func(text string) edits { return edits{labels: text} }
	value := func(text string) edits { return of("{pool: " + quoted(text) + "}") }
	refused{
		"a text":                    {of("pool=workers"), labels, "must be of type object"},
		"a list":                    {of("[pool]"), labels, "must be of type object"},
		"65 labels":                 {of("{" + times(65, "l%d: a") + "}"), labels, "must have at most 64 items"},
		"an empty key":              {of("{'': workers}"), labels, length},
		"a key of 318 chars":        {of("{" + strings.Repeat("a", 254) + "/" + strings.Repeat("b", 63) + ": a}"), labels, length},
		"a value that is a number":  {of("{pool: 1}"), labels + ".pool", "must be of type string"},
		"a value that is a bool":    {of("{pool: true}"), labels + ".pool", "must be of type string"},
		"a value that is a list":    {of("{pool: [a, b]}"), labels + ".pool", "must be of type string"},
		"a value of 64 chars":       {value(strings.Repeat("a", 64)), labels + ".pool", "may not be more than 63"},
		"a value with a space":      {value("a b"), labels + "[pool]", right},
		"a value with a slash":      {value("a/b"), labels + "[pool]", right},
		"a value with a comma":      {value("a,b"), labels + "[pool]", right},
		"a value with an operator":  {value("!a"), labels + "[pool]", right},
		"a value with emoji":        {value("🚀"), labels + "[pool]", right},
		"a value with NUL":          {value("a\x00"), labels + "[pool]", right},
		"a value with a newline":    {value("a\n"), labels + "[pool]", right},
		"a value right to left":     {value("\u202ea"), labels + "[pool]", right},
		"a value with shell text":   {value("$(reboot)"), labels + "[pool]", right},
		"a value with a template":   {value("{{ pool }}"), labels + "[pool]", right},
		"a value with a dash at it": {value("a-"), labels + "[pool]", right},
	}.run(t)
}

func TestInputOfBadExpressionsIsRefused(t *testing.T) {
	const (
		list      = "spec.nodeSelector.matchExpressions"
		first     = "spec.nodeSelector.matchExpressions[0]"
		operators = `supported values: "In", "NotIn", "Exists", "DoesNotExist"`
		right     = "label key must be a name of 1-63 characters (alphanumeric, '-', '_' or '.', alphanumeric at both ends), optionally after a lower-case DNS prefix and '/', e.g. 'node-role.kubernetes.io/worker'"
		needed    = "values must not be empty when operator is In or NotIn"
		forbidden = "values must be empty when operator is Exists or DoesNotExist: remove them, or use In or NotIn"
	)
	key := func(text string) edits { return expression("{key: " + quoted(text) + ", operator: Exists}") }
	refused{
		"a text":                     {edits{list: "pool in (a, b)"}, list, "must be of type array"},
		"null among them":            {expression("null"), first, "must be of type object"},
		"65 expressions":             {expression(times(65, "{key: a%d, operator: Exists}")), list, "must have at most 64 items"},
		"no key":                     {expression("{operator: Exists}"), first + ".key", "Required value"},
		"a key that is null":         {expression("{key: null, operator: Exists}"), first + ".key", "Required value"},
		"a key that is a number":     {expression("{key: 5, operator: Exists}"), first + ".key", "must be of type string"},
		"an empty key":               {key(""), first + ".key", right},
		"a key of two slashes":       {key("a/b/c"), first + ".key", right},
		"a key with no name":         {key("example.com/"), first + ".key", right},
		"a key with no prefix":       {key("/a"), first + ".key", right},
		"a key with capital prefix":  {key("Example.com/a"), first + ".key", right},
		"a key with a space":         {key("a b"), first + ".key", right},
		"a key with a look-alike":    {key("p\u043eol"), first + ".key", right},
		"a key with a newline":       {key("pool\n"), first + ".key", right},
		"a key with NUL":             {key("po\x00ol"), first + ".key", right},
		"a key with shell text":      {key("$(reboot)"), first + ".key", right},
		"a key out of its directory": {key("../pool"), first + ".key", right},
		"a key with 64 chars":        {key(strings.Repeat("a", 64)), first + ".key", right},
		"a key of 318 chars":         {key(strings.Repeat("a", 254) + "/" + strings.Repeat("b", 63)), first + ".key", "may not be more than 317"},
		"a key with a long prefix":   {key(strings.Repeat("a", 254) + "/b"), first + ".key", "at most 253 characters before its '/'"},
		"no operator":                {expression("{key: a}"), first + ".operator", "Required value"},
		"an operator that is null":   {expression("{key: a, operator: null}"), first + ".operator", "Required value"},
		"an empty operator":          {expression("{key: a, operator: ''}"), first + ".operator", operators},
		"an operator in lower case":  {expression("{key: a, operator: exists}"), first + ".operator", operators},
		"an operator of other kinds": {expression("{key: a, operator: Gt, values: ['1']}"), first + ".operator", operators},
		"an operator as a sign":      {expression("{key: a, operator: '=', values: [b]}"), first + ".operator", operators},
		"In without values":          {expression("{key: a, operator: In}"), first + ".values", needed},
		"In with empty values":       {expression("{key: a, operator: In, values: []}"), first + ".values", needed},
		"In with null as values":     {expression("{key: a, operator: In, values: null}"), first + ".values", needed},
		"NotIn without values":       {expression("{key: a, operator: NotIn}"), first + ".values", needed},
		"Exists with values":         {expression("{key: a, operator: Exists, values: [b]}"), first + ".values", forbidden},
		"DoesNotExist with values":   {expression("{key: a, operator: DoesNotExist, values: ['']}"), first + ".values", forbidden},
		"values that are a text":     {expression("{key: a, operator: In, values: b}"), first + ".values", "must be of type array"},
		"a value that is a number":   {expression("{key: a, operator: In, values: [1]}"), first + ".values[0]", "must be of type string"},
		"a value that is null":       {expression("{key: a, operator: In, values: [null]}"), first + ".values[0]", "must be of type string"},
		"a value of 64 chars":        {expression("{key: a, operator: In, values: [" + strings.Repeat("a", 64) + "]}"), first + ".values[0]", "may not be more than 63"},
		"a value with a space":       {expression("{key: a, operator: In, values: [ok, 'a b']}"), first + ".values[1]", "label value must be empty or consist of alphanumeric characters"},
		"257 values":                 {expression("{key: a, operator: In, values: [" + times(257, "v%d") + "]}"), first + ".values", "must have at most 256 items"},
	}.run(t)
}

func TestInputOfOddSelectorsIsAccepted(t *testing.T) {
	longKey := strings.Repeat("a", 253) + "/" + strings.Repeat("b", 63)
	accepted{
		"64 labels":            {edits{"spec.nodeSelector.matchLabels": "{" + times(64, "example.com/l%d: a") + "}"}, labelsOf(64)},
		"a label without text": {edits{"spec.nodeSelector.matchLabels": "{only-in-this-test: ''}"}, map[string]string{"only-in-this-test": ""}},
		"a key of 317 chars":   {edits{"spec.nodeSelector.matchLabels": "{" + longKey + ": ''}"}, map[string]string{longKey: ""}},
		"a key of 317 chars in an expression": {
			edits{selectorField: "{matchExpressions: [{key: " + longKey + ", operator: In, values: [b]}]}"},
			map[string]string{longKey: "b"},
		},
		"256 values":               {expression("{key: pool, operator: In, values: [{id}, " + times(255, "v%d") + "]}"), nil},
		"64 expressions":           {expression(times(64, "{key: a%d, operator: DoesNotExist}")), nil},
		"the same value twice":     {expression("{key: pool, operator: In, values: [{id}, {id}]}"), nil},
		"all four operators":       {expression("{key: pool, operator: Exists}, {key: pool, operator: In, values: [{id}]}, {key: pool, operator: NotIn, values: [b]}, {key: a, operator: DoesNotExist}"), nil},
		"NotIn of an absent label": {expression("{key: a, operator: NotIn, values: ['']}"), nil},
		"Exists with empty values": {expression("{key: pool, operator: Exists, values: []}"), nil},
		"expressions null":         {edits{"spec.nodeSelector.matchExpressions": "null"}, nil},
	}.run(t)
}

// labelsOf are this many labels.
func labelsOf(n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[fmt.Sprintf("example.com/l%d", i)] = "a"
	}
	return labels
}
