import { render } from 'preact';
import './style/base.css';
import './style/shell.css';
import './style/views.css';
import { App } from './app';
import { watch } from './hub/field';
import { appear } from './hub/person';
import { followAddress } from './route';
import { applyTheme } from './theme';

applyTheme();
followAddress();
appear();
watch();
const root = document.getElementById('app');
if (root) render(<App />, root);
