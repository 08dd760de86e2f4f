import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { mimeOf } from "../src/artifacts/mime.ts";

const bytes = (latin1: string) => Buffer.from(latin1, "latin1");
const png = bytes("\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
const zip = bytes("PK\x03\x04\x14\0\0\0");

describe("file's type", () => {
  test.each<[string, string, Buffer]>([
    ["image/png", "plot.png", png],
    ["image/jpeg", "photo", bytes("\xff\xd8\xff\xe0\0\x10JFIF")],
    ["image/gif", "a.gif", bytes("GIF89a\x01\0\x01\0")],
    ["image/webp", "a.webp", bytes("RIFF\x1a\0\0\0WEBPVP8L")],
    ["audio/wav", "a.wav", bytes("RIFF\x1a\0\0\0WAVEfmt ")],
    ["application/pdf", "paper", bytes("%PDF-1.7\n%\xe2\xe3\xcf\xd3")],
    ["application/zip", "all.zip", zip],
    ["application/gzip", "all.tgz", gzipSync("x")],
    ["application/x-tar", "all.tar", Buffer.concat([Buffer.alloc(257), bytes("ustar\x0000")])],
    ["application/vnd.apache.parquet", "t.parquet", bytes("PAR1\x15\x04\x15")],
    ["application/vnd.sqlite3", "db", bytes("SQLite format 3\0")],
    ["video/mp4", "clip.mp4", bytes("\0\0\0\x18ftypisom")],
  ])("a file is of the type %s by its content: %s", (mime, path, content) => {
    expect(mimeOf(path, content)).toBe(mime);
  });

  test.each<[string, string]>([
    ["application/json", "out/data.json"],
    ["text/csv", "DATA.CSV"],
    ["text/html", "report.html"],
    ["image/svg+xml", "plot.svg"],
    ["text/markdown", "README.md"],
    ["text/x-python", "main.py"],
    ["text/javascript", "main.js"],
    ["text/x-typescript", "main.ts"],
    ["text/plain", "notes.txt"],
    ["text/plain", "run.log"],
    ["text/plain", "Makefile"],
    ["text/plain", "no.such-ending"],
    ["text/plain", "a.constructor"],
  ])("a text file is of the type %s by its name: %s", (mime, path) => {
    expect(mimeOf(path, bytes("<svg>plain enough</svg>\n"))).toBe(mime);
  });

  test("a file's extension decides the kind of zip only if the content is a zip", () => {
    const sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    expect(mimeOf("book.xlsx", zip)).toBe(sheet);
    expect(mimeOf("book.xlsx", bytes("not a zip"))).toBe("text/plain");
    expect(mimeOf("book.xlsx", bytes("\0\x01\x02"))).toBe("application/octet-stream");
  });
});

describe("a misleading file name", () => {
  test.each<[string, Buffer, string]>([
    ["page.html", png, "image/png"],
    ["page.html", bytes("<script>\0"), "application/octet-stream"],
    ["plot.svg", zip, "application/zip"],
    ["plot.svg", bytes("<svg>\xff</svg>"), "application/octet-stream"],
    ["data.json", bytes("\x01\x02"), "application/octet-stream"],
    ["photo.png", bytes("<html><script>alert(1)</script>"), "text/plain"],
    ["photo.jpg", bytes("<?xml version='1.0'?><svg onload='x'/>"), "text/plain"],
    ["paper.pdf", bytes("#!/bin/sh\n"), "text/plain"],
    ["t.parquet", bytes("PAR1 is what parquet begins with"), "text/plain"],
    ["song.mp3", bytes("ID3 tags, explained"), "text/plain"],
    ["x.bz2", bytes("BZhello"), "text/plain"],
    ["clip.mp4", bytes("the ftyp box"), "text/plain"],
  ])("a misleading file name does not decide the type: %s", (path, content, mime) => {
    expect(mimeOf(path, content)).toBe(mime);
  });
});

describe("text", () => {
  test.each<[string, Buffer]>([
    ["an empty file", Buffer.alloc(0)],
    ["several scripts", Buffer.from("héllo 世界 🎉\r\n\t")],
    ["a byte order mark", Buffer.from("\ufeffone")],
    ["coloured output", bytes("\x1b[31mred\x1b[0m\n")],
    [
      "a character cut at the end of the sniffed bytes",
      Buffer.concat([Buffer.alloc(65_535, "a"), Buffer.from("é")]),
    ],
  ])("%s counts as text", (_, content) => {
    expect(mimeOf("x.log", content)).toBe("text/plain");
  });

  test.each<[string, Buffer]>([
    ["a NUL byte", bytes("a\0b")],
    ["a byte that UTF-8 never has", bytes("caf\xe9 au lait")],
    ["UTF-16", Buffer.from("\ufeffone", "utf16le")],
  ])("a file with %s is not text", (_, content) => {
    expect(mimeOf("x.txt", content)).toBe("application/octet-stream");
  });
});
