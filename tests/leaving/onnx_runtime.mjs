// onnx_runtime.mjs MODEL INPUT BATCH OUTPUT [NAME]: runs MODEL on the rows of INPUT, float32, so many
// at a time, and writes its output NAME (default: its first) of all of them, one behind the other.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [model, input, batchText, output, wanted] = process.argv.slice(2);
const onnx = createRequire(`${process.cwd()}/`)('onnxruntime-node');
const bytes = readFileSync(input);
const rows = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
const session = await onnx.InferenceSession.create(model, { intraOpNumThreads: 1 });
const [name] = session.inputNames;
const sizes = session.inputMetadata[0].shape.slice(1);
const columns = sizes.reduce((all, size) => all * size, 1);
const batch = Number(batchText);
const parts = [];
for (let first = 0; first < rows.length; first += batch * columns) {
  const some = rows.slice(first, first + batch * columns);
  const tensor = new onnx.Tensor('float32', some, [some.length / columns, ...sizes]);
  const result = await session.run({ [name]: tensor });
  const { data } = result[wanted ?? session.outputNames[0]];
  parts.push(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
}
writeFileSync(output, Buffer.concat(parts));
