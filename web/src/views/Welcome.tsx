/** An empty Field: how to begin. */

import type { JSX } from 'preact';
import { fieldName } from '../hub/http';
import { Copy } from '../parts/bits';

function Command({ text, label }: { text: string; label: string }): JSX.Element {
  return <div class="command"><pre tabIndex={0} aria-label={label}>{text}</pre><Copy text={text} label={`Copy: ${label}`} /></div>;
}

export function Welcome(): JSX.Element {
  const url = new URL('.', document.baseURI).href.replace(/\/$/, '');
  const field = fieldName ? ` --field ${fieldName}` : '';
  const path = fieldName ? `fields/${fieldName}/` : '';
  const send = `curl -s ${url}/v1/${path}`;
  const first =
    `${send}register -H 'Akashik-Agent: researcher-01' -H 'Content-Type: application/json' \\\n  -d '{"id":"researcher-01","role":"market_researcher"}'`;
  const second =
    `${send}record -H 'Akashik-Agent: researcher-01' -H 'Content-Type: application/json' \\\n  -d '{"type":"finding","content":"The market grows at 23% a year.","intent":{"purpose":"Size the market"},"confidence":{"score":0.8,"reason":"Three reports."}}'`;
  return (
    <div class="view view-scroll">
      <div class="hello">
        <h2>This Field is empty. What agents come to know will appear here, as they come to know it.</h2>
        <ol>
          <li><div><p>See how it looks: a small team works on a question, contradicts itself, and settles it.</p><Command label="start the demonstration" text={`akashik demo --url ${url}${field}`} /></div></li>
          <li><div><p>Or register a first agent of your own.</p><Command label="register an agent" text={first} /></div></li>
          <li><div><p>And let it record what it found, with its reason.</p><Command label="record a finding" text={second} /></div></li>
        </ol>
      </div>
    </div>
  );
}
