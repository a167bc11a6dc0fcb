import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import preact from '@preact/preset-vite';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

/** Compresses once what is served for ever. */
function compressed(): Plugin {
  const worthIt = /\.(js|css|html|svg)$/;
  return {
    name: 'compressed',
    apply: 'build',
    enforce: 'post',
    generateBundle(_, bundle) {
      for (const [name, file] of Object.entries(bundle)) {
        if (!worthIt.test(name)) continue;
        const text = file.type === 'chunk' ? file.code : file.source;
        const bytes = Buffer.from(text);
        const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
        this.emitFile({ type: 'asset', fileName: `${name}.br`, source: brotliCompressSync(bytes, quality) });
        this.emitFile({ type: 'asset', fileName: `${name}.gz`, source: gzipSync(bytes, { level: 9 }) });
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
