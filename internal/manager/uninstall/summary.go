package uninstall

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// summary has what a run removed, and what stays on purpose, with the reason.
type summary struct {
	mu    sync.Mutex
	kinds []string // in the order of removal
	count map[string]int
	kept  []string
	// unlistedOn has the ownership records that no rule of this cluster wrote, by node. They stay, with their taints:
	// an administrator must decide.
	unlistedOn map[string][]string
}

// removed counts removed objects.
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

// stays adds what stays on purpose, once.
func (s *summary) stays(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.kept, what) {
		s.kept = append(s.kept, what)
	}
}

// print writes the summary.
func (s *summary) print(out io.Writer, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	if len(s.kinds) == 0 {
		text.WriteString("Removed: nothing, the cluster was already clean\n")
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
		fmt.Fprintf(&text, "Not done:\n  %s\nFix the errors and run the cleanup again. Until then the manager is stopped, nodes are created without taints, and pods without gates. To keep Readygate instead, install it again (helm rollback, or kubectl apply of install.yaml).\n",
			strings.ReplaceAll(failed.Error(), "\n", "\n  "))
	}
	_, _ = io.WriteString(out, text.String()) // the exit code reports a failure, too
}

// named is the maximum number of failures that a message names.
const named = 10

// failures has errors of single objects, with their names.
type failures []error

func (f *failures) add(name string, err error) {
	if err != nil {
		*f = append(*f, fmt.Errorf("%s: %w", name, err))
	}
}

// err returns one error for all failures; nil if there are none.
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

// Error names at most named objects with their errors, and counts the rest.
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

// Unwrap returns the failures, for errors.Is and errors.As.
func (e *failuresError) Unwrap() []error { return e.failures }

// unlisted stores the ownership records of a node that no rule wrote.
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

// keepUnlisted adds the unlisted records to the summary, and names at most named nodes. It is called after the last
// visit of a node.
func (s *summary) keepUnlisted() {
	if len(s.unlistedOn) == 0 {
		return
	}
	var commands []string
	for _, node := range slices.Sorted(maps.Keys(s.unlistedOn))[:min(named, len(s.unlistedOn))] {
		commands = append(commands, fmt.Sprintf("kubectl annotate node %s %s-", node, s.unlistedOn[node][0]))
	}
	s.stays(fmt.Sprintf("ownership records on %d nodes that no rule wrote, with their taints: to remove the records: %s", len(s.unlistedOn), strings.Join(commands, "; ")))
}
