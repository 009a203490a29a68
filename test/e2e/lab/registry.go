package lab

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
)

const (
	registryAddress = planeAddress + ":5000"
	pauseImage      = "docker.io/lab/pause:1"
)

func repository() string { return testenv.Root() }

// startRegistry serves the images that nodes pull: those of make images, and those of the lab. All tests
// share one registry.
var startRegistry = sync.OnceValue(func() error {
	ours, _ := filepath.Glob(filepath.Join(repository(), "dist", "images", "*.tar"))
	labs, _ := filepath.Glob(asset("images/*.tar"))
	if len(ours) == 0 || len(labs) == 0 {
		return errors.New("no images in dist/images or bin/node/images: run make e2e, which builds them")
	}
	dir, _ := sandbox()
	cmd := exec.Command(asset("images-tool"), slices.Concat([]string{"serve", registryAddress}, ours, labs)...)
	if _, err := controlplane.StartProcess(cmd, filepath.Join(dir, "registry.log")); err != nil {
		return err
	}
	return awaitListener("tcp", registryAddress)
})
