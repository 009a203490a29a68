package lint

import (
	"cmp"
	"slices"
)

// Severity is the severity of a finding.
type Severity string

const (
	// Error is an object that the API server rejects, a rule without effect, or a rule that could evict the pods of
	// all nodes.
	Error Severity = "error"
	// Warning is a valid object that is likely to cause problems.
	Warning Severity = "warning"
	// Info is additional information.
	Info Severity = "info"
)

// Finding is one finding about a manifest.
type Finding struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	// Object is kind and name, e.g. NodeReadinessRule/network; empty for the whole file.
	Object string `json:"object,omitempty"`
	// Field is the path of the field, e.g. spec.taint.key; empty for the whole object.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// Do is the next step; empty if the message contains it.
	Do string `json:"do,omitempty"`

	// unsafe marks an error of a rule that works but is dangerous.
	unsafe bool
}

// Refused returns the number of errors that keep rules from working.
func (r *Report) Refused() int {
	return r.count(func(f *Finding) bool { return f.Severity == Error && !f.unsafe })
}

// Count returns the number of findings with this severity.
func (r *Report) Count(severity Severity) int {
	return r.count(func(f *Finding) bool { return f.Severity == severity })
}

func (r *Report) count(matches func(*Finding) bool) (n int) {
	for i := range r.Findings {
		if matches(&r.Findings[i]) {
			n++
		}
	}
	return n
}

func (r *Report) add(severity Severity, at document, field, message, do string) {
	r.Findings = append(r.Findings, Finding{Severity: severity, File: at.file, Object: at.name(), Field: field, Message: message, Do: do})
}

// sort orders findings by file, in the order of the inputs, and then by severity.
func (r *Report) sort(inputs []Input) {
	ranks := []Severity{Error, Warning, Info}
	order := map[string]int{}
	for i, input := range inputs {
		order[input.File] = i
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(slices.Index(ranks, a.Severity), slices.Index(ranks, b.Severity)))
	})
}
