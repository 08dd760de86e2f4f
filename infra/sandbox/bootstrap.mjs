/** A Debian file system from packages alone, for machines that reach a Debian mirror but no container registry. */
import { spawn } from 'node:child_process';
import { appendFileSync, createWriteStream, existsSync } from 'node:fs';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { hostSources } from './debian-sources.mjs';
import { folder, SUITE } from './recipe.mjs';

// What debian:*-slim leaves out as well: three quarters of what the packages would otherwise bring.
const LEFT_OUT = ['/usr/share/man/*', '/usr/share/doc/*', '/usr/share/info/*', '/usr/share/locale/*', '/usr/share/lintian/*'];

const MERGED_USR_HOOKS = '/usr/share/mmdebstrap/hooks/maybe-merged-usr';

/**
 * The file system as a tar stream. It ends only after mmdebstrap succeeded; a failure destroys it, so that the engine
 * never takes half a file system for a whole one.
 * @param {{ packages: string[], finish: boolean, log: string, program: string }} options
 *   `finish: false` leaves a plain base such as debian:bookworm-slim
 */
export function debianFileSystem(options) {
  const sources = hostSources();
  const argv = [
    '--variant=minbase',
    ...options.packages.map((name) => `--include=${name}`),
    // As in debian:bookworm-slim: /bin is a link from the start, instead of a package (with perl) that makes it one.
    ...(existsSync(MERGED_USR_HOOKS) ? [`--hook-dir=${MERGED_USR_HOOKS}`] : []),
    ...LEFT_OUT.map((pattern) => `--dpkgopt=path-exclude=${pattern}`),
    '--dpkgopt=path-include=/usr/share/doc/*/copyright',
    '--aptopt=Acquire::Languages "none"',
    // The file goes by the environment: as part of a hook's text its path would need quoting for a shell.
    ...(options.finish ? ['--customize-hook=chroot "$1" sh -s < "$BERTH_FINISH"'] : []),
    SUITE,
    '-',
    ...(sources.length > 0 ? ['-'] : []),
  ];
  appendFileSync(options.log, `\n$ mmdebstrap ${argv.join(' ')}\n`);
  const child = spawn(options.program, argv, {
    env: { ...process.env, BERTH_FINISH: path.join(folder, 'finish.sh') },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => undefined).end(`${sources.join('\n')}\n`);
  child.stderr.pipe(createWriteStream(options.log, { flags: 'a' }));

  const out = new PassThrough();
  child.stdout.pipe(out, { end: false });
  child.once('error', (error) => out.destroy(error));
  child.once('close', (code, signal) => {
    if (code === 0) out.end();
    else out.destroy(new Error(`mmdebstrap ended with ${signal ?? `exit code ${code}`}`));
  });
  out.once('close', () => {
    if (child.exitCode === null) child.kill('SIGTERM');
  });
  return out;
}
