package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// subject is a reporter binary.
type subject struct {
	name string // fit for names of objects
	path string
	ours bool
}

var nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

func newSubject(name, path string) (subject, error) {
	if !nameForm.MatchString(name) {
		return subject{}, fmt.Errorf("the name is %q, must be of small letters, digits and dashes, e.g. reference", name)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return subject{}, err
	}
	info, err := os.Stat(path)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = fmt.Errorf("%s is not a binary", path)
	}
	return subject{name: name, path: path}, err
}

// roles are those of the account of the subject. Ours needs no more than the guide grants.
func (s subject) roles() []string {
	if s.ours {
		return []string{guideRole}
	}
	return []string{guideRole, readRole}
}

// guideInterval is the CHECK_INTERVAL of the guide.
const guideInterval = 15 * time.Second

// phase is the time over which a component becomes ready at random: the pause between two
// checks of the subject or longer, so that no phase of its checks is favoured.
func (s subject) phase() time.Duration {
	if s.ours {
		return 2 * time.Second
	}
	return guideInterval
}

// expect is about how long starts take: by experience, on two cores.
func (s subject) expect(starts, parallel int, limited bool) time.Duration {
	one := s.phase()/2 + 700*time.Millisecond
	if !s.ours {
		one += guideInterval / 2
	}
	if limited {
		one += 2 * time.Second
	}
	return (time.Duration((starts+parallel-1)/parallel) * one).Round(time.Second)
}

// check is a check that a subject is to run.
type check struct {
	conditionType string
	endpoint      string
	interval      time.Duration
}

// variables are the environment of a subject with one check, as in the guide.
func (c check) variables() []string {
	return []string{"CONDITION_TYPE=" + c.conditionType, "CHECK_ENDPOINT=" + c.endpoint, "CHECK_INTERVAL=" + c.interval.String()}
}

// config is the configuration file of our reporter with these checks.
func config(checks []check) string {
	text := "apiVersion: readygate.dev/v1alpha1\nkind: ReporterConfig\nchecks:\n"
	var entries strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&entries, "- conditionType: %s\n  interval: %v\n  http: {url: %q}\n", c.conditionType, c.interval, c.endpoint)
	}
	return text + entries.String()
}
