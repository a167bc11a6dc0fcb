import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import preact from '@preact/preset-vite';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

/** Compresses once what is served for ever; from the files as written, after everybody else had their say. */
function compressed(): Plugin {
  const worthIt = /\.(js|css|html|svg)$/;
  return {
    name: 'compressed',
    apply: 'build',
    writeBundle({ dir = 'dist' }, bundle) {
      for (const name of Object.keys(bundle)) {
        if (!worthIt.test(name)) continue;
        const bytes = readFileSync(join(dir, name));
        const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
        writeFileSync(join(dir, `${name}.br`), brotliCompressSync(bytes, quality));
        writeFileSync(join(dir, `${name}.gz`), gzipSync(bytes, { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  // Relative, so that the page also works behind a path prefix.
  base: './',
  plugins: [preact({ devToolsEnabled: false }), compressed()],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  server: { proxy: { '/v1': { target: 'http://127.0.0.1:7420', ws: true }, '/metrics': 'http://127.0.0.1:7420', '/readyz': 'http://127.0.0.1:7420' } },
  test: { include: ['test/**/*.test.ts'], environment: 'node' },
});
