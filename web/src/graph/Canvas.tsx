/** The drawing of a loom. Cytoscape draws; where things stand is decided in `loom`. */

import cytoscape, { type Core, type ElementDefinition, type StylesheetJson } from 'cytoscape';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { type Unit, UNIT_STATUSES } from '../hub/types';
import { Icon } from '../parts/icons';
import { dark, still } from '../theme';
import { hueOf, RELATIONS, TYPE_WORDS } from '../words/names';
import type { Standing } from '../words/steps';
import { oneLine } from '../words/text';
import { followWheel, type Frame, show, zoomBy } from './lens';
import { ends, step, weave, type Woven } from './loom';

const COLUMN = 138;
/** Between two threads: as much as fills the room, within these. */
const LANE_MIN = 104;
const LANE_MAX = 210;
const UPRIGHT_LANE = 122;
const UPRIGHT_COLUMN = 104;
/** Sizes at which a loom is first shown: no larger, and no smaller than can be read. */
const LARGEST = 1.15;
const LEAST = 0.55;
/** Relations of one kind from one unit that each bear their word. */
const ALIKE_MAX = 4;
/** Around a loom that is shown whole, pixels. */
const PADDING = 44;
/** How far Shift and an arrow key move it, pixels. */
const PAN = 90;
const STATUSES = UNIT_STATUSES.join(' ');
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
  /** Those that are there already, as they stood, in a replay; all as they are without. */
  standing?: ReadonlyMap<string, Standing> | null;
  label: string;
}

export function Canvas({ units, chosen, onChoose, onOpen, standing = null, label }: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const core = useRef<Core | null>(null);
  const handlers = useRef({ onChoose, onOpen });
  handlers.current = { onChoose, onOpen };
  const isDark = dark.value;
  const woven = useMemo(() => weave(units.map((it) => ({ id: it.id, agent: it.source.agent_id, epoch: it.epoch, relations: it.relations }))), [units]);

  useEffect(() => {
    if (!box.current) return;
    // Before the library listens: who came first is asked first.
    const letGo = followWheel(box.current, () => core.current);
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
    // How close one looks, for whoever looks at the page from outside.
    made.on('zoom', () => made.container()?.setAttribute('data-zoom', made.zoom().toFixed(4)));
    core.current = made;
    // A panel that opens beside it may cover what was chosen.
    const resized = new ResizeObserver(() => {
      made.resize();
      const node = made.nodes('.chosen').first();
      if (node.nonempty() && !isSeen(made, node)) made.center(node);
    });
    resized.observe(box.current);
    return () => {
      resized.disconnect();
      letGo();
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
    if (wasEmpty && units.length > 0) fit(drawn, woven, chosen);
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
      drawn.nodes('.unit').forEach((node) => {
        const then = standing?.get(node.id());
        node.toggleClass('away', standing !== null && !then);
        if (standing === null) return;
        // Only what changed: a class that is set costs a style anew.
        const now = then ?? (node.data('now') as Standing);
        if (node.hasClass(now.status) && node.hasClass('archived') === now.archived) return;
        node.removeClass(STATUSES);
        node.addClass(now.status);
        node.toggleClass('archived', now.archived);
      });
      drawn.edges('.tie').forEach((edge) => {
        edge.toggleClass('away', standing !== null && !(standing.has(edge.source().id()) && standing.has(edge.target().id())));
      });
    });
    const node = chosen ? drawn.getElementById(chosen) : null;
    if (node?.nonempty() && !isSeen(drawn, node)) {
      if (still.value) drawn.center(node);
      else drawn.animate({ center: { eles: node } }, { duration: 220 });
    }
  }, [chosen, standing, woven, isDark]);

  const walk = (event: KeyboardEvent): void => {
    const drawn = core.current;
    if (!drawn || event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = KEYS[event.key];
    if (direction && event.shiftKey) {
      event.preventDefault();
      drawn.panBy({ left: { x: PAN, y: 0 }, right: { x: -PAN, y: 0 }, up: { x: 0, y: PAN }, down: { x: 0, y: -PAN } }[direction]);
    } else if (direction || event.key === 'Home' || event.key === 'End') {
      event.preventDefault();
      const [first, last] = ends(woven);
      const along = (isUpright(drawn) ? UPRIGHT_KEYS : KEYS)[event.key];
      const to = along ? step(woven, chosen ?? '', along) : event.key === 'Home' ? first : last;
      if (to) onChoose(to);
    } else if (event.key === 'Enter' && chosen) onOpen?.(chosen);
    else if (event.key === '+' || event.key === '=') zoomBy(drawn, 1.25, placeOf(drawn, chosen), true);
    else if (event.key === '-') zoomBy(drawn, 1 / 1.25, placeOf(drawn, chosen), true);
    else if (event.key === '0') show(drawn, frameOf(drawn, woven), PADDING, true);
  };
  const closer = (factor: number): void => {
    if (core.current) zoomBy(core.current, factor, undefined, true);
  };
  const it = units.find((one) => one.id === chosen);
  return (
    <>
      <div class="loom-tools">
        <button type="button" class="button button-icon wide-only" aria-label="Closer" title="Closer (+)" onClick={() => closer(1.35)}><Icon name="plus" /></button>
        <button type="button" class="button button-icon wide-only" aria-label="Further away" title="Further away (-)" onClick={() => closer(1 / 1.35)}><Icon name="minus" /></button>
        <button type="button" class="button button-icon" aria-label="Show all" title="Show all (0)" onClick={() => { if (core.current) show(core.current, frameOf(core.current, woven), PADDING, true); }}><Icon name="fit" /></button>
      </div>
      <div class="loom-canvas" ref={box} tabIndex={0} role="application" aria-roledescription="graph" aria-label={`${label} Arrow keys walk from unit to unit, plus and minus zoom.`} onKeyDown={walk} data-units={units.length} data-ties={woven.edges.length} />
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

function isSeen(drawn: Core, node: Pick<cytoscape.NodeSingular, 'renderedPosition'>): boolean {
  const { x, y } = node.renderedPosition();
  return x > 30 && y > 30 && x < drawn.width() - 30 && y < drawn.height() - 30;
}

/** Where the chosen unit is on the screen, if it is. */
function placeOf(drawn: Core, chosen: string | null): { x: number; y: number } | undefined {
  const node = chosen ? drawn.getElementById(chosen) : null;
  return node?.nonempty() && isSeen(drawn, node) ? { ...node.renderedPosition() } : undefined;
}

/** The room that a loom takes with its words, reckoned: to measure each word of a large one takes a tenth of a second. */
function frameOf(drawn: Core, woven: Woven): Frame {
  const { columns, lanes } = woven;
  const place = grid(drawn, woven);
  const [from, to] = [place(0, 0), place(Math.max(0, columns - 1), Math.max(0, lanes.length - 1))];
  if (isUpright(drawn)) return { x1: from.x - 60, y1: from.y - 90, x2: to.x + 60, y2: to.y + 100 };
  const names = Math.max(...lanes.map((one) => Math.min(26, one.length)), 0) * 8.5;
  return { x1: from.x - 0.57 * COLUMN - 8 - names, y1: from.y - 40, x2: to.x + 68, y2: to.y + 80 };
}

/** The whole, as long as it can be read; else the chosen unit, or the newest, at a size that can. */
function fit(drawn: Core, woven: Woven, chosen: string | null): void {
  const all = frameOf(drawn, woven);
  const node = chosen ? drawn.getElementById(chosen) : drawn.nodes('.unit').last();
  if (isUpright(drawn)) {
    // All threads next to each other, as far as they can be read; of their length what fits.
    const zoom = Math.min(1.1, Math.max(0.5, (drawn.width() - 16) / (all.x2 - all.x1)));
    look(drawn, all, zoom, node.nonempty() ? node.position() : { x: all.x1, y: all.y2 });
    return;
  }
  show(drawn, all, PADDING);
  if (drawn.zoom() > LARGEST) {
    drawn.zoom(LARGEST);
    const middle = { x: (all.x1 + all.x2) / 2, y: (all.y1 + all.y2) / 2 };
    drawn.pan({ x: drawn.width() / 2 - middle.x * LARGEST, y: drawn.height() / 2 - middle.y * LARGEST });
  } else if (drawn.zoom() < LEAST) {
    look(drawn, all, LEAST, node.nonempty() ? node.position() : { x: all.x2, y: all.y2 });
  }
}

/** Looks at a place, and beyond the edges of the loom only where all of it is seen. */
function look(drawn: Core, all: Frame, zoom: number, at: { x: number; y: number }): void {
  const along = (room: number, from: number, to: number, wanted: number): number => {
    const [least, most] = [room - to * zoom, -from * zoom];
    return least > most ? (least + most) / 2 : Math.min(most, Math.max(least, room / 2 - wanted * zoom));
  };
  drawn.viewport({ zoom, pan: { x: along(drawn.width(), all.x1, all.x2, at.x), y: along(drawn.height(), all.y1, all.y2, at.y) } });
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
      data: { id, label: `${TYPE_WORDS[it.type] ?? it.type} ${id.replace(/^mem-/, '')}\n${beginning(it.content)}`, colour, now: { status: it.status, archived: it.archived ?? false } satisfies Standing },
      position: place(column, lane),
      classes: `unit ${it.status} ${it.type} ${it.archived ? 'archived' : ''}`,
    });
    const before = lastOfLane.get(lane);
    if (before) made.push({ data: { id: `thread:${id}`, source: before, target: id, colour }, classes: 'thread', selectable: false });
    lastOfLane.set(lane, id);
  }
  // A synthesis of twenty units need not say twenty times that it elaborates.
  const alike = new Map<string, number>();
  for (const { source, type } of woven.edges) alike.set(`${source} ${type}`, (alike.get(`${source} ${type}`) ?? 0) + 1);
  for (const { id, source, target, type } of woven.edges) {
    const many = (alike.get(`${source} ${type}`) ?? 0) > ALIKE_MAX;
    made.push({ data: { id, source, target, word: RELATIONS[type]?.out ?? type }, classes: `tie ${type} ${many ? 'many' : ''}` });
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
        'font-family': sans, 'font-size': 14, 'text-wrap': 'wrap', 'text-max-width': upright ? '114px' : '132px', 'text-valign': 'bottom', 'text-margin-y': 6, 'line-height': 1.3,
        'text-background-color': paper, 'text-background-opacity': 0.82, 'text-background-padding': '2px', 'text-background-shape': 'roundrectangle', 'z-index': 5, 'min-zoomed-font-size': 7,
      },
    },
    { selector: 'node.decision, node.human_directive', style: { width: 30, height: 30 } },
    { selector: 'node.contested', style: { shape: 'diamond', 'background-color': clash, width: 33, height: 33 } },
    { selector: 'node.superseded', style: { 'background-color': paper, 'border-color': quiet, 'border-width': 2.5, color: quiet } },
    { selector: 'node.retracted', style: { shape: 'polygon', 'shape-polygon-points': CROSS, 'background-color': quiet, 'border-width': 0, color: quiet } },
    { selector: 'node.pending_enrichment', style: { shape: 'hexagon' } },
    // Put away, and still of its status: the colour stays, as a frame.
    { selector: 'node.archived', style: { shape: 'rectangle', 'background-opacity': 0.25, 'border-color': good, color: quiet } },
    { selector: 'node.archived.superseded, node.archived.retracted', style: { 'border-color': quiet, 'border-width': 2.5 } },
    {
      selector: 'edge.tie',
      style: {
        width: 2, 'curve-style': 'unbundled-bezier', 'control-point-distances': 26, 'control-point-weights': 0.5, 'target-arrow-shape': 'triangle', 'arrow-scale': 0.95, label: words ? 'data(word)' : '',
        'font-family': sans, 'font-size': 13, 'text-rotation': 'autorotate', 'text-background-color': paper, 'text-background-opacity': 0.9, 'text-background-padding': '2px', 'min-zoomed-font-size': 7, 'z-index': 3,
      },
    },
    ...ties,
    { selector: 'edge.tie.many', style: { label: '', width: 1.2, opacity: 0.55 } },
    { selector: 'edge.tie.near', style: { width: 3.2, opacity: 1, label: 'data(word)', 'z-index': 8 } },
    { selector: 'node.chosen', style: { 'border-color': accent, 'border-width': 4, 'underlay-color': accent, 'underlay-opacity': 0.2, 'underlay-padding': 7, 'underlay-shape': 'ellipse', 'z-index': 10 } },
    { selector: '.away', style: { opacity: 0.07, 'text-opacity': 0 } },
    { selector: 'node:active, edge:active', style: { 'overlay-opacity': 0 } },
  ];
}
