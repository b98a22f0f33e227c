package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// kubectl runs the linked-in kubectl and ends the process. It reads its
// arguments from the process, since it looks for plugins before it parses them.
func kubectl(args []string) {
	os.Args = args
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(args)) // a bad value is refused when the flags are parsed
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
