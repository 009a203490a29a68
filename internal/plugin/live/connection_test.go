package live_test

import (
	"testing"
	"time"

	"github.com/readygate/readygate/internal/plugin/live"
)

func TestFleetIsLostUntilEveryWatchIsRestored(t *testing.T) {
	fleet := live.NewFleet(time.Now)
	follower, before := fleet.Follow()
	defer follower.Stop()
	if before.Connection != (live.Connection{}) {
		t.Fatalf("lost from the start: %+v", before.Connection)
	}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	fleet.Connected("nodes")
	select {
	case <-follower.Changed():
		t.Error("notified although the connection did not change")
	default:
	}
	fleet.Disconnected("nodes", "reset", noon)
	fleet.Disconnected("rules", "refused", noon.Add(time.Minute))
	<-follower.Changed()
	want := live.Connection{Lost: noon, Problem: "refused"}
	if got := follower.Take().Connection; got == nil || *got != want || fleet.Snapshot().Connection != want {
		t.Errorf("got %+v, and the snapshot has %+v, want %+v", got, fleet.Snapshot().Connection, want)
	}
	fleet.Connected("nodes")
	if got := fleet.Snapshot().Connection; got != want {
		t.Errorf("half of it is heard: %+v, want %+v", got, want)
	}
	fleet.Connected("rules")
	<-follower.Changed()
	if got := follower.Take().Connection; got == nil || *got != (live.Connection{}) {
		t.Errorf("when all is heard: %+v", got)
	}
	fleet.Put(fedNode("a"))
	<-follower.Changed()
	if got := follower.Take().Connection; got != nil {
		t.Errorf("notified although the connection did not change: %+v", got)
	}
}
