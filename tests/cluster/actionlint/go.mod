// actionlint for the tests of the workflows: no code, only what is built, and from exactly which sources. tests/cluster/build builds it.
// The newest that Go 1.24 can build.

module nadmit.test/actionlint

go 1.24.0

tool github.com/rhysd/actionlint/cmd/actionlint

require github.com/rhysd/actionlint v1.7.11 // indirect

require (
	github.com/bmatcuk/doublestar/v4 v4.10.0 // indirect
	github.com/fatih/color v1.18.0 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/mattn/go-runewidth v0.0.17 // indirect
	github.com/mattn/go-shellwords v1.0.12 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	go.yaml.in/yaml/v4 v4.0.0-rc.3 // indirect
	golang.org/x/sync v0.19.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
)
