package lint

import (
	"cmp"
	"slices"
)

// Severity says how bad a finding is.
type Severity string

const (
	// Error is what the API server refuses, a rule that would do nothing, or one that could empty
	// all nodes.
	Error Severity = "error"
	// Warning is what applies and will hurt.
	Warning Severity = "warning"
	// Info is worth to know.
	Info Severity = "info"
)

// Finding is one thing to say about a manifest.
type Finding struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	// Object is kind and name, as in NodeReadinessRule/network; empty for the file as a whole.
	Object string `json:"object,omitempty"`
	// Field is the path of the field, as in spec.taint.key; empty for the object as a whole.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// Do is what to do about it; empty where the message says so.
	Do string `json:"do,omitempty"`

	// unsafe says that the rule works, and should not be let.
	unsafe bool
}

// Refused is how many errors keep the rules from working at all.
func (r *Report) Refused() int {
	return r.count(func(f *Finding) bool { return f.Severity == Error && !f.unsafe })
}

// Count is how many findings have this severity.
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

// sort orders findings: by file in the order in which files were given, the worst first.
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
