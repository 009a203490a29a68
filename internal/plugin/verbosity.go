package plugin

import (
	"flag"
	"io"
	"strconv"

	"k8s.io/klog/v2"
)

// verbosity is how much the client logs, as kubectl's -v. Its log is not for users: what they
// must know, commands say in words.
type verbosity struct {
	given bool
	level int
}

// Set, String and Type make it a flag.
func (v *verbosity) Set(text string) (err error) {
	v.given = true
	v.level, err = strconv.Atoi(text)
	return err
}

func (v *verbosity) String() string { return strconv.Itoa(v.level) }

// Type is the word for its values in help.
func (v *verbosity) Type() string { return "level" }

// apply starts the log, if it was asked for.
func (v *verbosity) apply() {
	if v.given {
		klog.LogToStderr(true)
		setLog("v", v.String())
	}
}

// silence ends the log.
func silence() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	setLog("stderrthreshold", "FATAL")
}

// setLog sets a flag of the log. Unlike a change of the logger, it may happen at any time.
func setLog(name, value string) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set(name, value) // flags and values are those of klog
}
