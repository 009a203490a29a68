package integration_test

import (
	"strings"
	"testing"
)

func TestInputOfBadTaintsIsRefused(t *testing.T) {
	const (
		taint   = "spec.taint"
		effect  = "spec.taint.effect"
		effects = `supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`
		added   = "spec.taint.timeAdded"
	)
	refused{
		"taint missing":            {edits{taint: absent}, taint, "Required value"},
		"taint null":               {edits{taint: "null"}, taint, "Required value"},
		"taint a text":             {edits{taint: "readiness.k8s.io/a=pending:NoSchedule"}, taint, "must be of type object"},
		"taint a list":             {edits{taint: "[readiness.k8s.io/a]"}, taint, "must be of type object"},
		"taint empty":              {edits{taint: "{}"}, "spec.taint.key", "Required value"},
		"effect missing":           {edits{effect: absent}, effect, "Required value"},
		"effect null":              {edits{effect: "null"}, effect, "Required value"},
		"effect empty":             {edits{effect: "''"}, effect, effects},
		"effect in lower":          {edits{effect: "noschedule"}, effect, effects},
		"effect spaced":            {edits{effect: "'NoSchedule '"}, effect, effects},
		"effect unknown":           {edits{effect: "NoAdmit"}, effect, effects},
		"effect a list":            {edits{effect: "[NoSchedule, NoExecute]"}, effect, "must be of type string"},
		"effect with a look-alike": {edits{effect: quoted("N\u043eSchedule")}, effect, effects},

		"timeAdded a word":    {edits{added: "yesterday"}, added, "must be of type date-time"},
		"timeAdded a date":    {edits{added: "'2026-01-31'"}, added, "must be of type date-time"},
		"timeAdded on no day": {edits{added: "'2026-02-31T00:00:00Z'"}, added, "must be of type date-time"},
		"timeAdded a number":  {edits{added: "1767225600"}, added, "must be of type date-time"},
	}.run(t)
}

func TestInputOfBadTaintKeysIsRefused(t *testing.T) {
	const (
		key    = "spec.taint.key"
		prefix = "taint key must start with 'readiness.k8s.io/' or 'startup-taint.cluster-autoscaler.kubernetes.io/', e.g. 'readiness.k8s.io/NetworkReady'"
		slash  = "exactly one '/' separator, e.g. 'readiness.k8s.io/NetworkReady'"
		length = "1-63 characters, e.g. 'readiness.k8s.io/NetworkReady'"
		chars  = "must consist of alphanumeric characters, '-', '_' or '.', e.g."
		ends   = "must start and end with an alphanumeric character, e.g."
	)
	is := func(text string) edits { return edits{key: quoted(text)} }
	refused{
		"missing":                    {edits{key: absent}, key, "Required value"},
		"null":                       {edits{key: "null"}, key, "Required value"},
		"a number":                   {edits{key: "5"}, key, "must be of type string"},
		"a bool":                     {edits{key: "true"}, key, "must be of type string"},
		"empty":                      {is(""), key, prefix},
		"a bare name":                {is("NetworkReady"), key, prefix},
		"a bare name, the slash":     {is("NetworkReady"), key, slash},
		"another prefix":             {is("example.com/NetworkReady"), key, prefix},
		"a prefix of Kubernetes":     {is("node.kubernetes.io/not-ready"), key, prefix},
		"a longer prefix":            {is("x.readiness.k8s.io/NetworkReady"), key, prefix},
		"a prefix that goes on":      {is("readiness.k8s.io.example.com/a"), key, prefix},
		"the prefix in capitals":     {is("Readiness.K8s.io/NetworkReady"), key, prefix},
		"the prefix with a Greek o":  {is("readiness.k8s.i\u03bf/NetworkReady"), key, prefix},
		"the prefix after a space":   {is(" readiness.k8s.io/NetworkReady"), key, prefix},
		"the prefix after a newline": {is("\nreadiness.k8s.io/NetworkReady"), key, prefix},
		"a path out of the prefix":   {is("readiness.k8s.io/../node.kubernetes.io/not-ready"), key, slash},
		"the prefix alone":           {is("readiness.k8s.io"), key, slash},
		"two slashes":                {is("readiness.k8s.io/vendor.com/nfs-unhealthy"), key, slash},
		"two slashes in a row":       {is("readiness.k8s.io//NetworkReady"), key, slash},
		"a slash at the end":         {is("readiness.k8s.io/NetworkReady/"), key, slash},
		"no name":                    {is("readiness.k8s.io/"), key, length},
		"a name of 64 chars":         {is("readiness.k8s.io/" + strings.Repeat("a", 64)), key, length},
		"a name of 64 chars under the other prefix": {
			is("startup-taint.cluster-autoscaler.kubernetes.io/" + strings.Repeat("a", 64)), key, length,
		},
		"254 chars":                  {is("readiness.k8s.io/" + strings.Repeat("a", 254-17)), key, "may not be more than 253"},
		"one MiB":                    {is("readiness.k8s.io/" + strings.Repeat("a", 1<<20)), key, "may not be more than 253"},
		"a name with a space":        {is("readiness.k8s.io/Network Ready"), key, chars},
		"a name with a colon":        {is("readiness.k8s.io/a:NoSchedule"), key, chars},
		"a name with an equals sign": {is("readiness.k8s.io/a=b"), key, chars},
		"a name with emoji":          {is("readiness.k8s.io/net🚀work"), key, chars},
		"a name with an umlaut":      {is("readiness.k8s.io/Verfügbar"), key, chars},
		"a name in Cyrillic":         {is("readiness.k8s.io/N\u0435tworkReady"), key, chars},
		"a name right to left":       {is("readiness.k8s.io/a\u202ebc"), key, chars},
		"a name with NUL":            {is("readiness.k8s.io/a\x00b"), key, chars},
		"a name with a newline":      {is("readiness.k8s.io/a\nb"), key, chars},
		"a newline at the end":       {is("readiness.k8s.io/a\n"), key, chars},
		"a name with a zero width":   {is("readiness.k8s.io/a\u200bb"), key, chars},
		"shell text":                 {is("readiness.k8s.io/$(reboot)"), key, chars},
		"SQL":                        {is("readiness.k8s.io/'; DROP TABLE nodes; --"), key, chars},
		"CEL":                        {is("readiness.k8s.io/' || true || 'a"), key, chars},
		"a template":                 {is("readiness.k8s.io/{{ .Values.name }}"), key, chars},
		"a wildcard":                 {is("readiness.k8s.io/*"), key, chars},
		"a dash in front":            {is("readiness.k8s.io/-NetworkReady"), key, ends},
		"a dash at the end":          {is("readiness.k8s.io/NetworkReady-"), key, ends},
		"a dot in front":             {is("readiness.k8s.io/.NetworkReady"), key, ends},
		"an underscore at the end":   {is("readiness.k8s.io/NetworkReady_"), key, ends},
		"dots only":                  {is("readiness.k8s.io/.."), key, ends},
	}.run(t)
}

func TestInputOfBadTaintValuesIsRefused(t *testing.T) {
	const (
		value = "spec.taint.value"
		right = "taint value must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character, e.g. 'pending'"
	)
	is := func(text string) edits { return edits{value: quoted(text)} }
	refused{
		"a number":             {edits{value: "1"}, value, "must be of type string"},
		"a bool":               {edits{value: "false"}, value, "must be of type string"},
		"a list":               {edits{value: "[pending]"}, value, "must be of type string"},
		"64 chars":             {is(strings.Repeat("a", 64)), value, "may not be more than 63"},
		"63 chars and newline": {is(strings.Repeat("a", 62) + "\n"), value, right},
		"a space":              {is("not ready"), value, right},
		"a slash":              {is("network/pending"), value, right},
		"a colon":              {is("pending:NoSchedule"), value, right},
		"a dash in front":      {is("-pending"), value, right},
		"a dot at the end":     {is("pending."), value, right},
		"emoji":                {is("🚀"), value, right},
		"right to left":        {is("\u05e2\u05e8\u05d1"), value, right},
		"NUL":                  {is("a\x00b"), value, right},
		"shell text":           {is("$(reboot)"), value, right},
		"a template":           {is("{{value}}"), value, right},
		"only a space":         {is(" "), value, right},
	}.run(t)
}

func TestInputOfOddTaintsIsAccepted(t *testing.T) {
	const key, value = "spec.taint.key", "spec.taint.value"
	longest := strings.Repeat("a", 63)
	accepted{
		"a name of one char":          {edits: edits{key: "readiness.k8s.io/7"}},
		"a name of 63 chars":          {edits: edits{key: "readiness.k8s.io/" + longest}},
		"a name of all kinds":         {edits: edits{key: "readiness.k8s.io/A-z_0.9"}},
		"the autoscaler's prefix":     {edits: edits{key: "startup-taint.cluster-autoscaler.kubernetes.io/{id}"}},
		"the longest key there is":    {edits: edits{key: "startup-taint.cluster-autoscaler.kubernetes.io/" + longest}},
		"a value of 63 chars":         {edits: edits{value: longest}},
		"a value of all kinds":        {edits: edits{value: "A-z_0.9"}},
		"an empty value":              {edits: edits{value: "''"}},
		"value null, which is absent": {edits: edits{value: "null"}},
		"no value":                    {edits: edits{value: absent}},
		"a number in quotes as value": {edits: edits{value: "'1'"}},
		"PreferNoSchedule":            {edits: edits{"spec.taint.effect": "PreferNoSchedule"}},
		"a time when it was added":    {edits: edits{"spec.taint.timeAdded": "'2026-01-31T12:00:00Z'"}},
		"a time that is to come":      {edits: edits{"spec.taint.timeAdded": "'9999-12-31T23:59:59+14:00'"}},
	}.run(t)
}
