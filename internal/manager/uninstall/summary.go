package uninstall

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// summary is what a run removed, and what stays on purpose and why.
type summary struct {
	mu    sync.Mutex
	kinds []string // in the order in which they came
	count map[string]int
	kept  []string
	// unlistedOn are hold records that no rule of this cluster wrote, by node. They stay, and so do
	// their taints: a person must decide.
	unlistedOn map[string][]string
}

// removed counts things that are no longer there.
func (s *summary) removed(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 {
		return
	}
	if s.count == nil {
		s.count = map[string]int{}
	}
	if s.count[what] == 0 {
		s.kinds = append(s.kinds, what)
	}
	s.count[what] += n
}

// stays notes what is left on purpose, once.
func (s *summary) stays(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.kept, what) {
		s.kept = append(s.kept, what)
	}
}

// print writes the summary for people.
func (s *summary) print(out io.Writer, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	if len(s.kinds) == 0 {
		text.WriteString("Removed: nothing, there was nothing left\n")
	} else {
		text.WriteString("Removed:\n")
	}
	for _, kind := range s.kinds {
		fmt.Fprintf(&text, "  %s: %d\n", kind, s.count[kind])
	}
	if len(s.kept) > 0 {
		fmt.Fprintf(&text, "Stays:\n  %s\n", strings.Join(s.kept, "\n  "))
	}
	if failed != nil {
		fmt.Fprintf(&text, "Not done:\n  %s\nRun it again when that is fixed. To keep Readygate instead, install it again (helm rollback, or kubectl apply of install.yaml): the manager is stopped, nodes are no longer created with the taint, and pods no longer gated.\n",
			strings.ReplaceAll(failed.Error(), "\n", "\n  "))
	}
	_, _ = io.WriteString(out, text.String()) // the exit code says it too
}

// named is how many things that failed are named.
const named = 10

// failures are errors of single objects, with their names.
type failures []error

func (f *failures) add(name string, err error) {
	if err != nil {
		*f = append(*f, fmt.Errorf("%s: %w", name, err))
	}
}

// err names what failed, some with their reason; nil if nothing did.
func (f failures) err(what string) error {
	if len(f) == 0 {
		return nil
	}
	return &failuresError{what: what, failures: f}
}

type failuresError struct {
	what string
	failures
}

// Error names the objects and their reasons, not all if there are many.
func (e *failuresError) Error() string {
	var words []string
	for _, err := range e.failures[:min(named, len(e.failures))] {
		words = append(words, err.Error())
	}
	if more := len(e.failures) - named; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d %s: %s", len(e.failures), e.what, strings.Join(words, "; "))
}

// Unwrap lets callers test for the kind of the failures.
func (e *failuresError) Unwrap() []error { return e.failures }

// unlisted notes the hold records on a node that no rule wrote.
func (s *summary) unlisted(node string, keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(keys) == 0 {
		delete(s.unlistedOn, node)
		return
	}
	if s.unlistedOn == nil {
		s.unlistedOn = map[string][]string{}
	}
	s.unlistedOn[node] = keys
}

// keepUnlisted names them in the summary, not all if there are many. No node is visited any more.
func (s *summary) keepUnlisted() {
	if len(s.unlistedOn) == 0 {
		return
	}
	var commands []string
	for _, node := range slices.Sorted(maps.Keys(s.unlistedOn))[:min(named, len(s.unlistedOn))] {
		commands = append(commands, fmt.Sprintf("kubectl annotate node %s %s-", node, s.unlistedOn[node][0]))
	}
	s.stays(fmt.Sprintf("hold records on %d nodes that no rule wrote, with their taints: remove them by hand if they are not wanted, e.g. %s", len(s.unlistedOn), strings.Join(commands, "; ")))
}
