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
		fmt.Fprintf(&text, "Not done:\n  %s\nRun it again when that is mended. To keep Readygate instead, install it again (helm rollback, or kubectl apply of install.yaml): the manager is stopped, nodes are no longer created with the taint, and pods no longer gated.\n",
			strings.ReplaceAll(failed.Error(), "\n", "\n  "))
	}
	_, _ = io.WriteString(out, text.String()) // the exit code says it too
}

// named is how many things that failed are named.
const named = 10

// failures are errors of single things, by name.
type failures struct {
	names []string
	errs  []error
}

func (f *failures) add(name string, err error) {
	if err != nil {
		f.names, f.errs = append(f.names, name), append(f.errs, err)
	}
}

// err names what failed, some with their reason; nil if nothing did.
func (f *failures) err(what string) error {
	if len(f.errs) == 0 {
		return nil
	}
	return &failuresError{what: what, failures: *f}
}

type failuresError struct {
	what string
	failures
}

// Error names the things and their reasons, not all if there are many.
func (e *failuresError) Error() string {
	var words []string
	for i, name := range e.names[:min(named, len(e.names))] {
		words = append(words, fmt.Sprintf("%s: %v", name, e.errs[i]))
	}
	if more := len(e.names) - named; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d %s: %s", len(e.names), e.what, strings.Join(words, "; "))
}

// Unwrap lets callers ask for the kind of the failures.
func (e *failuresError) Unwrap() []error { return e.errs }

// unlistedRecords are hold records that no rule of this cluster wrote, by node. They stay, and so do
// their taints: a person must decide.
type unlistedRecords struct {
	mu     sync.Mutex
	byNode map[string][]string
}

func (u *unlistedRecords) add(node string, keys []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(keys) == 0 {
		delete(u.byNode, node)
		return
	}
	if u.byNode == nil {
		u.byNode = map[string][]string{}
	}
	u.byNode[node] = keys
}

// report names them in the summary, not all if there are many.
func (u *unlistedRecords) report(s *summary) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.byNode) == 0 {
		return
	}
	var commands []string
	for _, node := range slices.Sorted(maps.Keys(u.byNode))[:min(named, len(u.byNode))] {
		commands = append(commands, fmt.Sprintf("kubectl annotate node %s %s-", node, u.byNode[node][0]))
	}
	s.stays(fmt.Sprintf("hold records on %d nodes that no rule wrote, with their taints: remove them by hand if they are not wanted, e.g. %s", len(u.byNode), strings.Join(commands, "; ")))
}
