// Builds the package where npm asks for it: after `npm ci` here, and when a project installs this folder. In the second
// case npm brings no devDependencies, so the compiler is fetched first, at the versions of the lock file.

import { execSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const run = (command) => execSync(command, { cwd: here, stdio: "inherit" });
if (!existsSync(new URL("node_modules/typescript/bin/tsc", import.meta.url))) {
  run("npm ci --ignore-scripts --include=dev --no-audit --no-fund");
}
run("node node_modules/typescript/bin/tsc");
