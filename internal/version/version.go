// Package version contains the version of the build.
package version

// Version is set by the build: -ldflags "-X .../internal/version.Version=v1.2.3".
var Version = "dev"
