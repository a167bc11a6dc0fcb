/** The drawing of a loom. Cytoscape draws; where things stand is decided in `loom`. */

import cytoscape, { type Core, type ElementDefinition, type StylesheetJson } from 'cytoscape';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Unit } from '../hub/types';
import { Icon } from '../parts/icons';
import { dark, still } from '../theme';
import { hueOf, RELATIONS, TYPE_WORDS } from '../words/names';
import { oneLine } from '../words/text';
import { step, weave, type Woven } from './loom';

const COLUMN = 138;
/** Between two threads: as much as fills the room, within these. */
const LANE_MIN = 104;
const LANE_MAX = 210;
const UPRIGHT_LANE = 122;
const UPRIGHT_COLUMN = 104;
/** Above so many edges, words stand only at those of the chosen unit. */
const WORDS_MAX = 60;

type Direction = 'left' | 'right' | 'up' | 'down';
const KEYS: Record<string, Direction> = { ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down' };
/** The same where time runs downwards. */
const UPRIGHT_KEYS: Record<string, Direction> = { ArrowLeft: 'up', ArrowRight: 'down', ArrowUp: 'left', ArrowDown: 'right' };

interface Props {
  units: readonly Unit[];
  chosen: string | null;
  onChoose: (id: string) => void;
  onOpen?: (id: string) => void;
  /** Those that are there already, in a replay; all without. */
  present?: ReadonlySet<string> | null;
  label: string;
}

export function Canvas({ units, chosen, onChoose, onOpen, present = null, label }: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const core = useRef<Core | null>(null);
  const handlers = useRef({ onChoose, onOpen });
  handlers.current = { onChoose, onOpen };
  const isDark = dark.value;
  const woven = useMemo(() => weave(units.map((it) => ({ id: it.id, agent: it.source.agent_id, epoch: it.epoch, relations: it.relations }))), [units]);

  useEffect(() => {
    if (!box.current) return;
    const made = cytoscape({
      container: box.current,
      layout: { name: 'preset' },
      minZoom: 0.12,
      maxZoom: 2.2,
      autoungrabify: true,
      boxSelectionEnabled: false,
      selectionType: 'single',
    });
    made.on('tap', 'node.unit', (event) => handlers.current.onChoose(event.target.id()));
    core.current = made;
    const resized = new ResizeObserver(() => made.resize());
    resized.observe(box.current);
    return () => {
      resized.disconnect();
      made.destroy();
      core.current = null;
    };
  }, []);

  useEffect(() => {
    const drawn = core.current;
    if (!drawn) return;
    const wasEmpty = drawn.elements().empty();
    drawn.batch(() => {
      drawn.elements().remove();
      drawn.add(elements(units, woven, isDark, grid(drawn, woven)));
    });
    drawn.style(sheet(isDark, woven.edges.length <= WORDS_MAX, isUpright(drawn)));
    if (wasEmpty) fit(drawn, chosen);
  }, [woven, units, isDark]);

  useEffect(() => {
    const drawn = core.current;
    if (!drawn) return;
    drawn.batch(() => {
      drawn.elements('.chosen').removeClass('chosen');
      drawn.elements('.near').removeClass('near');
      if (chosen) {
        const node = drawn.getElementById(chosen);
        node.addClass('chosen');
        node.connectedEdges('.tie').addClass('near');
      }
      drawn.nodes('.unit').forEach((node) => { node.toggleClass('away', present !== null && !present.has(node.id())); });
      drawn.edges('.tie').forEach((edge) => {
        edge.toggleClass('away', present !== null && !(present.has(edge.source().id()) && present.has(edge.target().id())));
      });
    });
    const node = chosen ? drawn.getElementById(chosen) : null;
    if (node?.nonempty() && !isSeen(drawn, node)) {
      if (still.value) drawn.center(node);
      else drawn.animate({ center: { eles: node } }, { duration: 220 });
    }
  }, [chosen, present, woven, isDark]);

  const walk = (event: KeyboardEvent): void => {
    const upright = core.current !== null && isUpright(core.current);
    const direction = (upright ? UPRIGHT_KEYS : KEYS)[event.key];
    if (direction) {
      event.preventDefault();
      const to = step(woven, chosen ?? '', direction);
      if (to) onChoose(to);
    } else if (event.key === 'Enter' && chosen) onOpen?.(chosen);
    else if (event.key === '+' || event.key === '=') core.current?.zoom(core.current.zoom() * 1.25);
    else if (event.key === '-') core.current?.zoom(core.current.zoom() / 1.25);
    else if (event.key === '0') core.current?.fit(undefined, 48);
  };
  const it = units.find((one) => one.id === chosen);
  return (
    <>
      <div class="loom-tools">
        <button type="button" class="button button-icon" aria-label="Show all" title="Show all (0)" onClick={() => core.current?.animate({ fit: { eles: core.current.elements(), padding: 48 } }, { duration: still.value ? 0 : 220 })}><Icon name="fit" /></button>
      </div>
      <div class="loom-canvas" ref={box} tabIndex={0} role="application" aria-roledescription="graph" aria-label={`${label} Arrow keys walk from unit to unit.`} onKeyDown={walk} data-units={units.length} data-ties={woven.edges.length} />
      <p class="unseen" aria-live="polite">{it ? `${TYPE_WORDS[it.type]} ${it.id} by ${it.source.agent_id}, ${it.status}: ${oneLine(it.content, 160)}` : ''}</p>
    </>
  );
}

/** The first words of a text, whole ones where they fit. */
function beginning(text: string): string {
  const line = oneLine(text, 30);
  const at = line.endsWith('…') ? line.lastIndexOf(' ') : -1;
  return at > 12 ? `${line.slice(0, at)}…` : line;
}

function isSeen(drawn: Core, node: cytoscape.CollectionReturnValue): boolean {
  const { x, y } = node.renderedPosition();
  return x > 30 && y > 30 && x < drawn.width() - 30 && y < drawn.height() - 30;
}

/** The whole, as long as it can be read; else the chosen unit, or the newest, at a size that can. */
function fit(drawn: Core, chosen: string | null): void {
  drawn.fit(undefined, 48);
  if (isUpright(drawn)) {
    fitUpright(drawn, chosen);
    return;
  }
  const least = 0.55;
  if (drawn.zoom() > 1.15) {
    drawn.zoom(1.15);
    drawn.center();
  } else if (drawn.zoom() < least) {
    drawn.zoom(least);
    const node = chosen ? drawn.getElementById(chosen) : drawn.nodes('.unit').last();
    drawn.center(node.nonempty() ? node : undefined);
  }
}

/** All threads next to each other; of their length what fits, with the chosen unit, or the newest, in the lower half. */
function fitUpright(drawn: Core, chosen: string | null): void {
  const all = drawn.elements().boundingBox({});
  const zoom = Math.min(1.1, Math.max(0.5, (drawn.width() - 16) / all.w));
  drawn.zoom(zoom);
  const node = chosen ? drawn.getElementById(chosen) : drawn.nodes('.unit').last();
  const at = node.nonempty() ? node.position().y : all.y2;
  const fits = all.h * zoom < drawn.height() - 32;
  const y = fits ? drawn.height() / 2 - ((all.y1 + all.y2) / 2) * zoom : drawn.height() * 0.72 - at * zoom;
  drawn.pan({ x: drawn.width() / 2 - ((all.x1 + all.x2) / 2) * zoom, y });
}

/** On a narrow screen time runs from top to bottom, and the threads stand next to each other. */
const isUpright = (drawn: Core): boolean => drawn.width() < 620;

/** Where a column of a lane stands. */
type Grid = (column: number, lane: number) => { x: number; y: number };

function grid(drawn: Core, woven: Woven): Grid {
  if (isUpright(drawn)) return (column, lane) => ({ x: lane * UPRIGHT_LANE, y: column * UPRIGHT_COLUMN });
  const height = laneHeight(drawn, woven);
  return (column, lane) => ({ x: column * COLUMN, y: lane * height });
}

function laneHeight(drawn: Core, { columns, lanes }: Woven): number {
  const wide = (columns + 1) * COLUMN;
  const filling = (wide * drawn.height()) / Math.max(1, drawn.width()) / Math.max(1, lanes.length);
  return Math.min(LANE_MAX, Math.max(LANE_MIN, filling));
}

function elements(units: readonly Unit[], woven: Woven, isDark: boolean, place: Grid): ElementDefinition[] {
  const byId = new Map(units.map((it) => [it.id, it]));
  const made: ElementDefinition[] = [];
  const lastOfLane = new Map<number, string>();
  woven.lanes.forEach((agent, lane) => {
    const colour = `hsl(${hueOf(agent)}, ${isDark ? '34%, 46%' : '38%, 62%'})`;
    made.push({ data: { id: `lane:${lane}`, label: oneLine(agent, 26), colour }, position: place(-0.57, lane), classes: 'lane', selectable: false });
    lastOfLane.set(lane, `lane:${lane}`);
  });
  for (const { id, column, lane } of woven.placed) {
    const it = byId.get(id);
    if (!it) continue;
    const agent = woven.lanes[lane] ?? '';
    const colour = `hsl(${hueOf(agent)}, ${isDark ? '34%, 46%' : '38%, 62%'})`;
    made.push({
      data: { id, label: `${TYPE_WORDS[it.type] ?? it.type} ${id.replace(/^mem-/, '')}\n${beginning(it.content)}`, colour },
      position: place(column, lane),
      classes: `unit ${it.status} ${it.type} ${it.archived ? 'archived' : ''}`,
    });
    const before = lastOfLane.get(lane);
    if (before) made.push({ data: { id: `thread:${id}`, source: before, target: id, colour }, classes: 'thread', selectable: false });
    lastOfLane.set(lane, id);
  }
  for (const { id, source, target, type } of woven.edges) {
    made.push({ data: { id, source, target, word: RELATIONS[type]?.out ?? type }, classes: `tie ${type}` });
  }
  return made;
}

/** The corners of a cross. */
const CROSS = '-1 -0.65 -0.65 -1 0 -0.35 0.65 -1 1 -0.65 0.35 0 1 0.65 0.65 1 0 0.35 -0.65 1 -1 0.65 -0.35 0';

function sheet(isDark: boolean, words: boolean, upright: boolean): StylesheetJson {
  const [ink, quiet, paper, accent, clash, good] = isDark
    ? ['#ecebf3', '#8f90a2', '#0f1015', '#9aa8ff', '#ff8a70', '#62d1a2']
    : ['#1c1d26', '#656877', '#f6f5f1', '#3b4fc4', '#c2381f', '#18704b'];
  const sans = 'Inter, system-ui, sans-serif';
  const ties: StylesheetJson = Object.entries(RELATIONS).map(([type, look]) => ({
    selector: `edge.tie.${type}`,
    style: {
      'line-color': isDark ? look.dark : look.light,
      'target-arrow-color': isDark ? look.dark : look.light,
      'target-arrow-shape': look.arrow,
      'line-style': look.line,
      ...(look.dash ? { 'line-dash-pattern': look.dash } : {}),
      color: isDark ? look.dark : look.light,
    },
  }));
  return [
    { selector: 'node.lane', style: { 'background-opacity': 0, 'border-width': 0, width: 1, height: 1, label: 'data(label)', color: ink, 'font-family': sans, 'font-size': 16, 'font-weight': 600, 'text-halign': upright ? 'center' : 'left', 'text-valign': upright ? 'top' : 'center', 'text-margin-x': upright ? 0 : -6, events: 'no' } },
    { selector: 'edge.thread', style: { width: 5, 'line-color': 'data(colour)', 'line-opacity': isDark ? 0.42 : 0.3, 'curve-style': 'straight', 'line-cap': 'round', events: 'no', 'z-index': 0 } },
    {
      selector: 'node.unit',
      style: {
        width: 24, height: 24, shape: 'ellipse', 'background-color': good, 'border-width': 2.5, 'border-color': paper, label: 'data(label)', color: ink,
        'font-family': sans, 'font-size': 13, 'text-wrap': 'wrap', 'text-max-width': upright ? '112px' : '128px', 'text-valign': 'bottom', 'text-margin-y': 6, 'line-height': 1.3,
        'text-background-color': paper, 'text-background-opacity': 0.82, 'text-background-padding': '2px', 'text-background-shape': 'roundrectangle', 'z-index': 5, 'min-zoomed-font-size': 7,
      },
    },
    { selector: 'node.decision, node.human_directive', style: { width: 30, height: 30 } },
    { selector: 'node.contested', style: { shape: 'diamond', 'background-color': clash, width: 33, height: 33 } },
    { selector: 'node.superseded', style: { 'background-color': paper, 'border-color': quiet, 'border-width': 2.5, color: quiet } },
    { selector: 'node.retracted', style: { shape: 'polygon', 'shape-polygon-points': CROSS, 'background-color': quiet, 'border-width': 0, color: quiet } },
    { selector: 'node.pending_enrichment', style: { shape: 'hexagon' } },
    { selector: 'node.archived', style: { shape: 'rectangle', 'background-color': quiet } },
    {
      selector: 'edge.tie',
      style: {
        width: 2, 'curve-style': 'unbundled-bezier', 'control-point-distances': 26, 'control-point-weights': 0.5, 'target-arrow-shape': 'triangle', 'arrow-scale': 0.95, label: words ? 'data(word)' : '',
        'font-family': sans, 'font-size': 13, 'text-rotation': 'autorotate', 'text-background-color': paper, 'text-background-opacity': 0.9, 'text-background-padding': '2px', 'min-zoomed-font-size': 7, 'z-index': 3,
      },
    },
    ...ties,
    { selector: 'edge.tie.near', style: { width: 3.2, label: 'data(word)', 'z-index': 8 } },
    { selector: 'node.chosen', style: { 'border-color': accent, 'border-width': 4, 'underlay-color': accent, 'underlay-opacity': 0.2, 'underlay-padding': 7, 'underlay-shape': 'ellipse', 'z-index': 10 } },
    { selector: '.away', style: { opacity: 0.07, 'text-opacity': 0 } },
    { selector: 'node:active, edge:active', style: { 'overlay-opacity': 0 } },
  ];
}
