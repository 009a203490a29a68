package reporter

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// bootTime is when the machine was started, by its own clock; zero where that is not known.
func bootTime() time.Time {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}
	}
	for line := range strings.Lines(string(data)) {
		if text, found := strings.CutPrefix(line, "btime "); found {
			seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil {
				return time.Time{}
			}
			return time.Unix(seconds, 0)
		}
	}
	return time.Time{}
}
