package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
)

const (
	registryAddress = planeAddress + ":5000"
	pauseImage      = "docker.io/lab/pause:1"
)

func repository() string { return testenv.Root() }

// startRegistry serves the images that nodes pull: ours, as make images builds them, and those
// of the lab. There is one for all tests.
var startRegistry = sync.OnceValue(func() error {
	ours, _ := filepath.Glob(filepath.Join(repository(), "dist", "images", "*.tar"))
	labs, _ := filepath.Glob(asset("images/*.tar"))
	if len(ours) == 0 || len(labs) == 0 {
		return errors.New("no images in dist/images or bin/node/images: run make e2e, which builds them")
	}
	dir, _ := sandbox()
	log, err := os.Create(filepath.Join(dir, "registry.log"))
	if err != nil {
		return err
	}
	cmd := exec.Command(asset("images-tool"), append([]string{"serve", registryAddress}, append(ours, labs...)...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := controlplane.StartChild(cmd); err != nil {
		return fmt.Errorf("starting the registry: %w", err)
	}
	return awaitListener("tcp", registryAddress)
})
