package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// The images of the product, made of the real binaries, run: as the user of the image, and,
// where the test may do that, with nothing around but the image. So does every other binary in them.
func TestProductImagesRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("images are for Linux")
	}
	project, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	product, err := readRecipe("images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Symlink(filepath.Join(project, "LICENSE"), "LICENSE"); err != nil {
		t.Fatal(err)
	}
	for _, source := range product.sources(runtime.GOARCH) {
		out, err := filepath.Abs(source)
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command("go", "build", "-C", project, "-buildvcs=false", "-o", out, "./cmd/"+filepath.Base(source))
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", source, err, output)
		}
	}
	images(t, "build", "--recipe", filepath.Join(project, "hack/images/images.yaml"), "--out", "out", "--tag", "v0.1.0", "--arch", runtime.GOARCH)
	for _, image := range product.Images {
		t.Run(image.shortName(), func(t *testing.T) { runImage(t, image, only(t, filepath.Join("out", image.shortName()+".tar"))) })
	}
}

func runImage(t *testing.T, made image, image v1.Image) {
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" {
		t.Errorf("user is %q, must be 65532:65532", config.Config.User)
	}
	root := t.TempDir()
	extract(t, image, root)
	binaries := []string{config.Config.Entrypoint[0]}
	for _, file := range made.Files {
		if file.perArch() && !slices.Contains(binaries, file.To) {
			binaries = append(binaries, file.To)
		}
	}
	for _, binary := range binaries {
		command := exec.Command(filepath.Join(root, binary), "--help")
		if os.Geteuid() == 0 {
			command.Path = binary
			command.Dir = "/"
			command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		}
		output, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(output), "--version") {
			t.Errorf("%s --help: %v\n%s", binary, err, output)
		}
	}
}

func extract(t *testing.T, image v1.Image, dir string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // only a directory
	content := mutate.Extract(image)
	defer content.Close() //nolint:errcheck // only read
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name, mode := filepath.Clean(header.Name), header.FileInfo().Mode()
		if header.Typeflag == tar.TypeDir {
			err = root.MkdirAll(name, 0o755)
		} else {
			err = extractFile(root, name, mode, reader)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func extractFile(root *os.Root, name string, mode os.FileMode, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	out, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY, mode.Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}
