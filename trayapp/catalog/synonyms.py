"""Words that people use for one another when they ask for a tool: general English of files, the web, code, money, time.

A line of GROUPS holds words that mean about the same; of CHINESE, an English word and what it is called in the language
of many servers' descriptions; of HINTS, a word and what it points to, not the reverse. Servers' own vocabulary has no
place here: that is what `settings.synonyms` is for. Never here: code that uses the tables.
"""

from __future__ import annotations

GROUPS = """
delete remove erase drop discard trash destroy wipe
purge clear clean empty flush
create make new generate build compose
add insert append put attach
find search seek discover lookup look
locate find where
get fetch retrieve obtain read return load
show display view see
list enumerate
update edit modify change alter revise amend
replace substitute swap
set configure adjust
write save store record
write add append insert
send deliver submit message
post publish
reply answer respond
run execute invoke launch perform
start begin launch open
stop kill terminate end abort halt quit
pause stop suspend
cancel abort end revoke
restart rerun rerun relaunch reboot again
copy duplicate clone
move rename transfer relocate reschedule
convert transform turn change
merge combine join concatenate unite
split divide separate
compare diff difference different versus
check verify validate test inspect examine
calculate compute evaluate solve sum math arithmetic calculator
draw paint sketch
plot chart graph diagram visualize visualise draw visualization
download export
upload import
extract parse
scrape crawl extract fetch
summarize summarise summary overview abstract
analyze analyse analysis examine study
explain describe description
schedule plan arrange book
complete finish done close tick resolve mark
close shut resolve
approve accept confirm
reject decline deny refuse
undo revert reset rollback restore
deploy install release rollout
watch monitor observe
invite guest attendee
subscribe subscription
reserve book booking reservation
remember memory memorize memorise
suggest recommend propose recommendation suggestion
optimal best ideal
choose pick select
navigate browse visit open
type fill enter input
share link
recipe cook cooking dish meal food
file document
document doc docx word
directory folder dir subfolder
picture image photo graphic png jpg photograph
website webpage site web page url
web internet online
browser chrome chromium
email mail inbox gmail
meeting event appointment calendar
calendar almanac
invitation invite
task todo reminder
issue bug ticket defect
error exception crash failure fault
repository repo
pr pull
code source program
user person people member account profile
owner whois belong owns registrant
customer client buyer
organization organisation org company
company business firm
team group
price cost value worth quote
stock share ticker equity
dollar euro currency exchange
rate price exchange
money balance payment funds
refund reimburse repay
bill invoice
discount coupon promotion
crypto cryptocurrency bitcoin ethereum coin token
gold silver metal asset
news headline
article paper publication
article story post
paper document
study trial
scientific academic research
weather forecast temperature
time clock hour
date day today
map location place
address location
coordinate latitude longitude geocode
route direction travel drive way
distance far
restaurant cafe
shop store business
nearby near around close
apartment flat accommodation lodging listing hotel airbnb
vehicle car
song music track audio sound
loud volume louder quieter
play playback
video movie film clip youtube
subtitle transcript caption transcribe transcription
speech voice aloud spoken
slide presentation powerpoint ppt pptx deck
spreadsheet excel workbook sheet xlsx
row record entry
database db sql
column field
container docker
pod container kubernetes
cluster kubernetes
server host
log output
process program
shell terminal command
password credential secret
text word
number integer
random dice die coin roll
game match
chart graph
documentation docs manual guide
library package module dependency
version release
trending trend popular hot
popular popularity top
vulnerability security cve
license licence
history past historical previous
latest newest recent last current
statistics stats metric statistic
setting configuration config option
size large big
size length
long duration length
speed tempo bpm
beat bpm tempo
color colour
neighborhood neighbourhood
visit travel
difficulty problem challenge
thread conversation
discussion comment thread
comment remark note
emoji reaction
channel room
chat conversation
contact phone
holiday vacation
inventory stock warehouse
ship shipped shipment parcel fulfill delivery
order purchase
light lamp
alarm alert
incident outage
cpu memory metric
domain dns
synchronize sync synchronise
application app
authenticate auth login signin
information info detail
message msg
environment env
parameter argument
temporary temp
maximum max
minimum min
identifier id
advertisement ad ads
quotation citation cite reference
translate translation language
french english german spanish chinese japanese language
dataset data
scatter correlation relationship
share proportion percentage
pie proportion percentage
hierarchy hierarchical tree
colleague coworker teammate user
artwork painting art
income profit revenue earnings
trip journey travel
"""

CHINESE = """
search 搜索 查询 检索
find 查找
get 获取
list 列表 列出
create 创建 新建
generate 生成
delete 删除
update 更新 修改
write 写入 保存
read 读取
send 发送
convert 转换
upload 上传
download 下载
recommend 推荐
translate 翻译
calculate 计算
analysis 分析
file 文件
document 文档
image picture 图片 图像
video 视频
music song 音乐
web 网页
link 链接
news 新闻 资讯
article 文章
book 图书 书籍
movie film 电影
game 游戏
trending trend hot 热榜 热门 热搜 热点
rank ranking leaderboard 排行 榜单
weather 天气
map 地图
address 地址
route 路线
station 车站
train 列车 火车
ticket 车票 余票
flight 航班 机票
hotel 酒店
restaurant 餐厅
recipe 菜谱
food 美食
price 价格
stock 股票
finance financial 财经 金融
business 商业
technology tech 科技 技术
electronics digital 数码
product 产品
consumer 消费
company 公司 企业
user 用户
name 名称
date 日期
time 时间
calendar 日历 黄历
birthday 生日
city 城市
number 数量 编号
code 代码
database 数据库
table 表格
chart 图表
component 组件
example 示例
message 消息
comment 评论
task 任务
order 订单
character role 角色
card 卡牌 卡片
slide 幻灯片
note 笔记
folder 文件夹 目录
email 邮件
schedule 日程
"""

HINTS = """
html: page
folder: path
rename: file
subtitle: video
bitcoin: price
worth: price
tomorrow: forecast event
meeting: schedule
bug: report
mail: message
text: message
cook: recipe
drive: route car
lamp: service
google: search web
wiki: wikipedia confluence page
"""
