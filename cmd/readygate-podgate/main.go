// Command readygate-podgate opens the network readiness gates of the pods on its node when every component of the pod
// network is ready.
package main

import (
	"os"

	"github.com/readygate/readygate/internal/podgate"
	"github.com/readygate/readygate/internal/program"
)

func main() {
	os.Exit(program.Run("readygate-podgate", "readygate-podgate opens the network readiness gates of the pods on its node.", os.Args[1:], podgate.NewOptions()))
}
