// generation_peer.mjs MODULES FOLDER: ONNX Runtime's side of bench_generation, which says what is
// read, asked and answered. MODULES is the folder into which tests/leaving/run_slow installs it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [modules, folder] = process.argv.slice(2);
const say = (line) => process.stdout.write(`${line}\n`);
if (!existsSync(`${modules}/node_modules/onnxruntime-node`)) {
  say(`missing onnxruntime-node in ${modules}: tests/leaving/run_slow installs it`);
  process.exit(0);
}
const require = createRequire(`${modules}/`);
const onnx = require('onnxruntime-node');

const bytes = readFileSync(`${folder}/latents.f32`);
const rows = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
const session = await onnx.InferenceSession.create(`${folder}/generator.onnx`, {
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  executionMode: 'sequential',
  graphOptimizationLevel: 'all',
});
const [name] = session.inputNames;
const columns = session.inputMetadata[0].shape[1];
const batches = [1, 8, 32];
let batch = batches[0];

async function make() {
  const parts = [];
  for (let first = 0; first < rows.length; first += batch * columns) {
    const some = rows.slice(first, first + batch * columns);
    const tensor = new onnx.Tensor('float32', some, [some.length / columns, columns]);
    const result = await session.run({ [name]: tensor });
    parts.push(result[session.outputNames[0]].data);
  }
  return parts;
}

async function seconds() {
  const before = process.cpuUsage();
  await make();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

async function choose() {
  const found = [];
  for (batch of batches) {
    await seconds(); // the first call allocates
    found.push([batch, await seconds()]);
  }
  found.sort((a, b) => a[1] - b[1]);
  [[batch]] = found;
  return found.map(([size, time]) => `batches of ${size} ${time.toFixed(2)} s`).join(', ');
}

async function answer(request) {
  if (request === 'choose') return `ok ${await choose()}`;
  if (request === 'time') return `ok ${await seconds()}`;
  if (request !== 'make') return `error what is ${request}`;
  const parts = await make();
  const whole = parts.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength));
  writeFileSync(`${folder}/showers.f32`, Buffer.concat(whole));
  return 'ok';
}

const { version } = require('onnxruntime-node/package.json');
say(`ok onnxruntime-node ${version}`);
for await (const request of createInterface({ input: process.stdin })) say(await answer(request));
