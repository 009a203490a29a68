package report

// TimeRatio is that of a phase of a subject, exported to try it alone.
func TimeRatio(run *Run, subject string, phase int) float64 {
	for i := range run.Results {
		if run.Results[i].Subject == subject {
			return float64(run.read(&run.Results[i])[phase].timeRatio())
		}
	}
	return 0
}
